"""Evaluation: translate test sets and score runs overall, by sentence length, and against each other.

Several runs are compared with the first one. Lengths are counted in spaCy tokens or in characters, never in a run's own
tokens, so that all runs share the same buckets.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from seq2seq_attn.errors import UsageError, UserError
from seq2seq_attn.evaluation.attention import analyze_attention
from seq2seq_attn.evaluation.names import Arm, find_arms, run_names
from seq2seq_attn.evaluation.scoring import DEFAULT_SETTINGS, Settings, score_sets
from seq2seq_attn.evaluation.systems import (
    DEFAULT_DECODING,
    ENSEMBLE_HYPS,
    Decoding,
    System,
    make_ensemble,
    read_validations,
)
from seq2seq_attn.evaluation.test_sets import EvaluationSet, Languages, find_sets, set_name
from seq2seq_attn.evaluation.translations import SetTranslations, SystemTexts, translate_set
from seq2seq_attn.files import read_json
from seq2seq_attn.metrics.attention_stats import AttentionStatistics
from seq2seq_attn.metrics.by_length import parse_edges
from seq2seq_attn.metrics.table import DEFAULT_METRICS, METRICS
from seq2seq_attn.report.files import ReportFiles
from seq2seq_attn.report.pages import Report
from seq2seq_attn.run_dir import RunDir, newest_run
from seq2seq_attn.runtime.device import resolve_device
from seq2seq_attn.runtime.environment import describe_environment
from seq2seq_attn.text.tokenizers.base import VECTORS
from seq2seq_attn.translate.batching import suggest_smaller_batch
from seq2seq_attn.translate.ensemble import check_alike

log = logging.getLogger(__name__)

NO_FILES = ReportFiles()


def evaluate(
    runs: str | Path | Sequence[str | Path] | None = None,
    *,
    split: str | Sequence[str] = (),
    source: str | Path | None = None,
    reference: str | Path | Sequence[str | Path] = (),
    concatenate: Sequence[int] = (),
    metric: Sequence[str] = (),
    ensemble: bool = False,
    by_length: str | None = None,
    reuse_hypotheses: bool = False,
    device: str = "auto",
    json: str | Path | None = None,
    report: str | Path | None = None,
    **search: Any,
) -> Report:
    """Translate test sets and score runs, as `seq2seq evaluate` does. `Report.data` has plain values.

    >>> scores = evaluate(["runs/a", "runs/b"], report="comparison.html")  # doctest: +SKIP
    >>> scores.data["sets"][0]["measures"][0]["runs"][0]["score"]         # doctest: +SKIP

    Args:
        runs: run directories; the others are compared with the first. None: the run that finished last.
        split: splits of the runs' corpus; none: its test sets.
        source: instead of splits, a file with one sentence per line, and `reference`, its translation or several.
        concatenate: for each number K, score sets of K pairs concatenated into one; none: pairs as they are.
        metric: the metrics, the first one also by length; none: that of the runs' validation, BLEU and chrF.
        ensemble: also score all runs as one model, by the mean of their probabilities.
        by_length: lower edges of the length buckets (`9,12,15`), or `quantiles:N`; None: chosen for the corpus.
        reuse_hypotheses: reuse saved translations of the same model and settings.
        device: `auto`, `cpu`, `cuda` or `cuda:N`.
        json, report: files to write, the report as .md or .html. Without both, the report goes to the first run.
        search: options of the search, for example `beam_size=1`; the others are as each run is configured.

    Raises:
        UsageError, UserError: as the command.
    """
    return evaluate_runs(
        [runs] if isinstance(runs, str | Path) else runs,
        splits=[split] if isinstance(split, str) else split,
        source=_path(source),
        references=[Path(reference)] if isinstance(reference, str | Path) else [*map(Path, reference)],
        concatenate=concatenate,
        settings=Settings(by_length, metrics=tuple(metric)),
        decoding=Decoding(search, device=device, reuse_hypotheses=reuse_hypotheses),
        files=ReportFiles(_path(json), _path(report)),
        ensemble=ensemble,
    )


def evaluate_runs(
    runs: Sequence[str | Path] | None = None,
    *,
    splits: Sequence[str] = (),
    source: Path | None = None,
    references: Sequence[Path] = (),
    concatenate: Sequence[int] = (),
    settings: Settings = DEFAULT_SETTINGS,
    decoding: Decoding = DEFAULT_DECODING,
    files: ReportFiles = NO_FILES,
    ensemble: bool = False,
    no_attention: bool = False,
) -> Report:
    """Translate test sets, score the runs, write the report. Runs that differ in nothing but the seed are grouped, and
    their means are compared too. Hypotheses are saved in each run's `hyps/`, or beside the JSON if that is named.

    Args:
        files: files to write. If none is named, the report goes to the first run, with Markdown and plots beside it,
            under the name of `_report_name`; otherwise no run is written to.
        no_attention: do not analyze it by forced decoding of hypotheses, and of references with gold links.
        others: as for `evaluate`.

    Raises:
        UsageError: options contradict each other, or runs that do not go together.
        UserError: a run or a file that cannot be read, a report that cannot be written.
    """
    if settings.by_length is not None:
        parse_edges(settings.by_length)
    systems = _make_systems([newest_run().path] if runs is None else runs, decoding, ensemble=ensemble)
    singles = [system for system in systems if not system.is_ensemble]
    name = _report_name(len(singles), source, splits, concatenate) + decoding.variation(systems[0].config.search)
    to_write = _files_to_write(files, systems[0], f"{name}.json", [*([source] if source else []), *references])
    sets = find_sets(
        [system.runs[0] for system in singles],
        [system.config for system in singles],
        splits,
        source=source,
        references=references,
        concatenate=concatenate,
        show_progress=decoding.show_progress,
    )
    hyps_dirs = _hyps_dirs(systems, to_write, is_named=files.is_named)
    made = [
        [translate_set(system, test_set, hyps_dir=hyps_dir, keep_maps=to_write.is_html) for test_set in sets]
        for system, hyps_dir in zip(systems, hyps_dirs, strict=True)
    ]
    report = _score(sets, systems, made, settings, no_attention=no_attention)
    _write(to_write, report, sets, [_texts(*pair) for pair in zip(systems, made, strict=True)])
    return report


def _make_systems(runs: Sequence[str | Path], decoding: Decoding, *, ensemble: bool) -> list[System]:
    """The runs, then their ensemble if it is requested. What can be wrong with them is an error before data is
    prepared."""
    if not runs:
        raise UsageError("no run to evaluate: name at least one")
    _ = decoding.resolved_precision
    run_dirs = [RunDir(run) for run in runs]
    configs = [run.config() for run in run_dirs]
    for run in run_dirs:
        if run.last_dir.exists() and not run.is_finished():
            log.warning("%s: its training has not finished; its best model so far is evaluated", run.path)
    names = run_names([run.path for run in run_dirs], configs)
    systems = [
        System(name, [run], [config], decoding) for name, run, config in zip(names, run_dirs, configs, strict=True)
    ]
    if not ensemble:
        return systems
    if len(runs) == 1:
        raise UsageError(f"--ensemble with one run ({run_dirs[0].path}): name two or more")
    check_alike(run_dirs)
    return [*systems, make_ensemble(systems)]


def _score(
    sets: Sequence[EvaluationSet],
    systems: Sequence[System],
    made: Sequence[list[SetTranslations]],
    settings: Settings,
    *,
    no_attention: bool,
) -> Report:
    data = systems[0].config.data
    if VECTORS in data.sources and settings.length_of == "source":
        log.info("lengths: those of the references, because the name of a file of vectors has none")
        settings = replace(settings, length_of="reference")
    metric = systems[0].config.train.validation.metric
    if not settings.metrics:
        leads = metric in METRICS and METRICS[metric].is_scored_by_length
        settings = replace(settings, metrics=tuple(dict.fromkeys([*([metric] if leads else []), *DEFAULT_METRICS])))
    languages = Languages(data.source_name, data.target_language, "files" if sets[0].is_file else data.corpus)
    scored = score_sets(
        sets,
        {system.name: translations for system, translations in zip(systems, made, strict=True)},
        languages=languages,
        settings=settings,
        arms=_arms(systems),
        analyses=[] if no_attention else [_analyze(sets, *pair, languages) for pair in zip(systems, made, strict=True)],
    )
    environment = describe_environment(sys.argv, resolve_device(systems[0].decoding.device))
    return Report(scored, [_describe(*pair) for pair in zip(systems, made, strict=True)], environment)


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


def _analyze(
    sets: Sequence[EvaluationSet], system: System, made: Sequence[SetTranslations], languages: Languages
) -> list[AttentionStatistics]:
    """The attention of a system on each set; of an ensemble, from its texts alone, because forced decoding takes one
    run."""
    translator = None if system.is_ensemble else system.translator
    batch_size = system.search.batch_size
    with suggest_smaller_batch(batch_size):
        return [
            analyze_attention(test_set, translations.lines, languages, translator, batch_size=batch_size)
            for test_set, translations in zip(sets, made, strict=True)
        ]


def _files_to_write(files: ReportFiles, first: System, name: str, inputs: Sequence[Path]) -> ReportFiles:
    """The named files, else the default files in the first run; none if that run cannot be written to."""
    if files.is_named:
        files.check(inputs)
        return files
    path = first.runs[0].path / name
    try:
        default = ReportFiles(json=path, page=path.with_suffix(".md"), plots=files.plots or "png", is_in_run_dir=True)
        default.check()
    except UserError as error:
        log.warning("%s; the scores are shown, not saved: --json FILE saves them elsewhere", error)
        return NO_FILES
    return default


def _arms(systems: Sequence[System]) -> list[Arm]:
    """The runs grouped by configuration and training text; an ensemble is an arm of its own."""
    runs = [system for system in systems if not system.is_ensemble]
    texts = [system.runs[0].text_hashes()["train"] for system in runs]
    ensembles = [Arm(system.name, (index,), ()) for index, system in enumerate(systems) if system.is_ensemble]
    return [*find_arms([system.name for system in runs], [system.config for system in runs], texts), *ensembles]


def _hyps_dirs(systems: Sequence[System], files: ReportFiles, *, is_named: bool) -> list[Path | None]:
    """Where the hypotheses of each system are saved; None: nowhere."""
    if files.json is None:
        return [None] * len(systems)
    if not is_named:
        return [system.hyps_dir for system in systems]
    names = [ENSEMBLE_HYPS if system.is_ensemble else system.runs[0].path.resolve().name for system in systems]
    if len(set(names)) < len(names):
        names = [f"{name}-{number}" for number, name in enumerate(names, start=1)]
    folder = files.json.with_name(f"{files.json.name.removesuffix('.json')}.hyps")
    return [folder / name for name in names]


def _write(files: ReportFiles, report: Report, sets: Sequence[EvaluationSet], systems: Sequence[SystemTexts]) -> None:
    if files.is_in_run_dir and files.json is not None and files.json.exists() and _is_other(files.json, report.data):
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


def _report_name(num_runs: int, source: Path | None, splits: Sequence[str], concatenate: Sequence[int]) -> str:
    """The file name of the report: `report.json` for the test sets, the run's own search settings and fp32. Whatever
    differs is in the name, so that it does not overwrite that: `report.comparison.json`, `report.valid.beam1.json`,
    `report.files.news.de.json`."""
    parts = ["report", *(["comparison"] if num_runs > 1 else [])]
    parts += ["files", set_name(source)] if source else list(dict.fromkeys(splits))
    return ".".join([*parts, *(f"x{k}" for k in dict.fromkeys(concatenate))])


def _path(path: str | Path | None) -> Path | None:
    return None if path is None else Path(path)
