"""Evaluation: translate test sets and score runs overall, by sentence length, and against each other.

Several runs are compared with the first one. Lengths are counted in spaCy tokens or in characters, never in a run's own
tokens, so that all runs share the same buckets.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from seq2seq_attn.config import Config
from seq2seq_attn.data.store import TRAIN_TEXT
from seq2seq_attn.errors import UsageError, UserError
from seq2seq_attn.evaluation.arms import Arm, find_arms
from seq2seq_attn.evaluation.attention import AttentionAnalyzer
from seq2seq_attn.evaluation.attention_scores import AttentionAnalysis
from seq2seq_attn.evaluation.learning_curve import read_validations
from seq2seq_attn.evaluation.names import run_names
from seq2seq_attn.evaluation.scoring import DEFAULT_SETTINGS, Settings, score_sets
from seq2seq_attn.evaluation.sets import EvaluationSet, Languages
from seq2seq_attn.evaluation.systems import DEFAULT_DECODING, ENSEMBLE_HYPS, Decoding, System, make_ensemble
from seq2seq_attn.evaluation.test_sets import find_sets, set_name
from seq2seq_attn.evaluation.translations import SetTranslations, SystemTexts, translate_set
from seq2seq_attn.files import read_json
from seq2seq_attn.metrics.by_length import check_edges
from seq2seq_attn.report.build import Report, build_report
from seq2seq_attn.report.files import ReportFiles
from seq2seq_attn.run_dir import RunDir
from seq2seq_attn.runtime.device import resolve_device
from seq2seq_attn.runtime.environment import describe_environment
from seq2seq_attn.runtime.precision import translation_precision
from seq2seq_attn.text.tokenizers.base import VECTORS
from seq2seq_attn.translate.batching import explained_batch_size
from seq2seq_attn.translate.ensemble import check_alike

log = logging.getLogger(__name__)

NO_FILES = ReportFiles()


@dataclass(frozen=True)
class EvaluationRequest:
    """Which runs to evaluate, on what, how, and which files to write."""

    runs: Sequence[str | Path]
    """run directories; the others are compared with the first"""
    splits: Sequence[str] = ()
    """splits of the runs' corpus; none: its test sets, each by itself and pooled"""
    source: Path | None = None
    """instead of splits: a file with one sentence per line, plain or .gz"""
    reference: Path | None = None
    """its translation"""
    concatenate: Sequence[int] = ()
    """for each number K, sets of K pairs joined to one (1: as they are); none: as they are"""
    settings: Settings = DEFAULT_SETTINGS
    decoding: Decoding = DEFAULT_DECODING
    files: ReportFiles = NO_FILES
    """files to write; if none is named, the report goes to the first run, with Markdown and plots beside it, under the
    name of `_report_name`; otherwise no run is written to"""
    ensemble: bool = False
    """also score all runs as one model, by the mean of their probabilities"""
    analyze_attention: bool = True
    """analyze attention by forced decoding of hypotheses, and of references with gold links"""


def evaluate(request: EvaluationRequest) -> Report:
    """Translate, score, write the report. Runs that differ in nothing but the seed are grouped, and their means are
    compared too. Hypotheses are saved in each run's `hyps/`, or beside the JSON if that is named.

    Raises:
        UsageError: files and splits together, one file without the other, an unknown split, runs of different data,
            runs that cannot form an ensemble.
        UserError: a run or a file that cannot be read, a report that cannot be written.
    """
    _check_request(request)
    run_dirs = [RunDir(run) for run in request.runs]
    configs = [run.config() for run in run_dirs]
    _warn_of_unfinished(run_dirs)
    names = run_names([run.path for run in run_dirs], configs)
    if request.ensemble:
        _check_ensemble(run_dirs)
    files = _files_to_write(request, run_dirs[0], configs[0])
    source, decoding = request.source, request.decoding
    sets = find_sets(
        run_dirs,
        configs,
        request.splits,
        source=source,
        reference=request.reference,
        concatenate=request.concatenate,
        show_progress=decoding.show_progress,
    )
    systems = _systems(request, run_dirs, configs, names)
    hyps_dirs = _hyps_dirs(request, files, systems)
    translations = {
        system.name: [translate_set(system, one, hyps_dir=hyps_dir, keep_maps=files.is_html) for one in sets]
        for system, hyps_dir in zip(systems, hyps_dirs, strict=True)
    }
    data, settings = configs[0].data, request.settings
    if VECTORS in data.sources and settings.length_of == "source":
        log.info("lengths: those of the references, because the name of a file of vectors has none")
        settings = replace(settings, length_of="reference")
    languages = Languages(data.source_name, data.target_language, "files" if source else data.corpus)
    made = list(translations.values())
    scored = score_sets(
        sets,
        translations,
        languages=languages,
        settings=settings,
        arms=_arms(run_dirs, names, configs, [system.name for system in systems]),
        analyses=_analyze(sets, systems, made, languages) if request.analyze_attention else None,
    )
    descriptions = [_describe(*pair) for pair in zip(systems, made, strict=True)]
    environment = describe_environment(sys.argv, resolve_device(decoding.device))
    report = build_report(scored, descriptions, environment, languages=languages)
    _write(files, report, sets, [_texts(*pair) for pair in zip(systems, made, strict=True)])
    return report


def _describe(system: System, translations: Sequence[SetTranslations]) -> dict[str, Any]:
    seconds = sum(made.seconds for made in translations)
    is_reused = all(made.is_reused for made in translations)
    return {**system.describe(), "seconds": round(seconds, 1), "is_reused": is_reused}


def _texts(system: System, translations: Sequence[SetTranslations]) -> SystemTexts:
    """What the HTML page shows; an ensemble has no configuration and no training history."""
    if system.is_ensemble:
        return SystemTexts(translations)
    validations = read_validations(system.runs[0].metrics_path)
    return SystemTexts(translations, system.config.model_dump(mode="json"), validations)


def _warn_of_unfinished(runs: Sequence[RunDir]) -> None:
    for run in runs:
        if run.last_dir.exists() and not run.is_finished():
            log.warning("%s: its training has not finished; its best model so far is evaluated", run.path)


def _check_request(request: EvaluationRequest) -> None:
    """Check what can be checked before data is prepared. Raises UsageError."""
    if not request.runs:
        raise UsageError("no run to evaluate: name at least one")
    if request.settings.by_length is not None:
        check_edges(request.settings.by_length)
    translation_precision(request.decoding.precision, resolve_device(request.decoding.device))


def _analyze(
    sets: Sequence[EvaluationSet],
    systems: Sequence[System],
    translations: Sequence[Sequence[SetTranslations]],
    languages: Languages,
) -> list[list[AttentionAnalysis]]:
    """The attention analysis of each system on each set; of an ensemble, from its texts alone, because forced decoding
    takes one run."""
    analyses: list[list[AttentionAnalysis]] = [[] for _ in systems]
    for index, test_set in enumerate(sets):
        analyzer = AttentionAnalyzer(test_set, languages)
        for by_set, system, made in zip(analyses, systems, translations, strict=True):
            translator = None if system.is_ensemble else system.translator
            batch_size = system.search.batch_size
            with explained_batch_size(batch_size):
                by_set.append(analyzer.analyze(made[index].lines, translator, batch_size=batch_size))
    return analyses


def _files_to_write(request: EvaluationRequest, first: RunDir, config: Config) -> ReportFiles:
    """The named files, else the default files in the first run; none if that run cannot be written to."""
    files = request.files
    if files.is_named:
        files.check([path for path in (request.source, request.reference) if path is not None])
        return files
    path = first.path / _report_name(request, config)
    try:
        of_run = ReportFiles(json=path, page=path.with_suffix(".md"), plots=files.plots or "png", is_of_run=True)
        of_run.check()
    except UserError as error:
        log.warning("%s; the scores are shown, not saved: --json FILE saves them elsewhere", error)
        return NO_FILES
    return of_run


def _check_ensemble(runs: Sequence[RunDir]) -> None:
    """Raise UsageError if the runs cannot form an ensemble, before any of them translates for minutes."""
    if len(runs) == 1:
        raise UsageError(f"--ensemble with one run ({runs[0].path}): name two or more")
    check_alike(runs)


def _systems(
    request: EvaluationRequest, runs: Sequence[RunDir], configs: Sequence[Config], names: Sequence[str]
) -> list[System]:
    """The systems to evaluate: the runs, then their ensemble if requested."""
    systems = [
        System(name, [run], [config], request.decoding) for name, run, config in zip(names, runs, configs, strict=True)
    ]
    return [*systems, make_ensemble(systems)] if request.ensemble else systems


def _arms(runs: Sequence[RunDir], names: Sequence[str], configs: Sequence[Config], systems: Sequence[str]) -> list[Arm]:
    """The runs grouped by configuration and training text; an ensemble, which comes after the runs, is an arm of its
    own."""
    texts = [run.best_metadata().get(TRAIN_TEXT) for run in runs]
    ensembles = [Arm(name, (index,), ()) for index, name in enumerate(systems) if index >= len(names)]
    return [*find_arms(names, configs, texts), *ensembles]


def _hyps_dirs(request: EvaluationRequest, files: ReportFiles, systems: Sequence[System]) -> list[Path | None]:
    """Where the hypotheses of each system are saved; None: nowhere."""
    if not request.files.is_named:
        return [system.hyps_dir if files.is_named else None for system in systems]
    if files.json is None:
        return [None] * len(systems)
    names = [ENSEMBLE_HYPS if system.is_ensemble else system.runs[0].path.resolve().name for system in systems]
    if len(set(names)) < len(names):
        names = [f"{name}-{number}" for number, name in enumerate(names, start=1)]
    folder = files.json.with_name(f"{files.json.name.removesuffix('.json')}.hyps")
    return [folder / name for name in names]


def _write(files: ReportFiles, report: Report, sets: Sequence[EvaluationSet], systems: Sequence[SystemTexts]) -> None:
    if files.is_of_run and files.json is not None and files.json.exists() and _is_other(files.json, report.data):
        log.warning("%s: replaces a report on other runs or measures; to keep both, add --json FILE", files.json)
    if written := files.write(report, sets, systems):
        log.info("written: %s", ", ".join(map(str, written)))


def _is_other(path: Path, data: dict[str, Any]) -> bool:
    """Whether the report in a file is on other runs, measures or lengths, or not readable."""
    subjects = []
    try:
        for report in (read_json(path), data):
            measures = [measure["name"] for measure in report["sets"][0]["measures"]]
            runs = [run.get("path", run.get("members")) for run in report["runs"]]
            subjects.append((runs, measures, report["length"]))
    except (UserError, KeyError, IndexError, TypeError):
        return True
    return subjects[0] != subjects[1]


def _report_name(request: EvaluationRequest, config: Config) -> str:
    """The file name of the report: `report.json` for the test sets, the run's own search settings and fp32. Whatever
    differs is in the name, so that it does not overwrite that: `report.comparison.json`, `report.valid.beam1.json`,
    `report.files.news.de.json`."""
    parts = ["report", *(["comparison"] if len(request.runs) > 1 else [])]
    parts += ["files", set_name(request.source)] if request.source else list(dict.fromkeys(request.splits))
    parts += [f"x{k}" for k in dict.fromkeys(request.concatenate)]
    return ".".join(parts) + request.decoding.variation(config.search) + ".json"
