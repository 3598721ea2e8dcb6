"""Evaluation: translate test sets and score runs overall, by sentence length, and against each
other.

Several runs are compared with the first one. Lengths are counted in spaCy tokens or in characters,
never in a run's own tokens, so that all runs share the same buckets.
"""

import logging
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

from seq2seq_attn.errors import UsageError, UserError
from seq2seq_attn.evaluation.attention import analyze_attention
from seq2seq_attn.evaluation.names import Arm, find_arms, run_names
from seq2seq_attn.evaluation.scoring import Settings, score_sets
from seq2seq_attn.evaluation.systems import ENSEMBLE_HYPS, System, make_ensemble
from seq2seq_attn.evaluation.test_sets import EvaluationSet, Languages, find_sets, set_name
from seq2seq_attn.evaluation.translations import SetTranslations, translate_set
from seq2seq_attn.files import check_writable
from seq2seq_attn.metrics.attention import AttentionStatistics
from seq2seq_attn.metrics.bleu import Measure
from seq2seq_attn.metrics.by_length import parse_edges
from seq2seq_attn.metrics.significance import DEFAULT_RESAMPLING, Resampling
from seq2seq_attn.metrics.table import DEFAULT_METRICS, METRICS, LengthIn, LengthOf
from seq2seq_attn.report.files import check_report_files, write_report_files
from seq2seq_attn.report.html import html_report
from seq2seq_attn.report.pages import Report
from seq2seq_attn.run import Run, open_runs
from seq2seq_attn.runtime.device import resolve_device
from seq2seq_attn.runtime.environment import describe_environment
from seq2seq_attn.runtime.memory import suggest_smaller_batch
from seq2seq_attn.translate.figure import PlotFormat
from seq2seq_attn.translate.load import check_alike

log = logging.getLogger(__name__)


def evaluate(
    runs: str | Path | Run | Sequence[str | Path | Run] | None = None,
    *,
    split: str | Sequence[str] = (),
    source: str | Path | None = None,
    reference: str | Path | Sequence[str | Path] = (),
    concatenate: Sequence[int] = (),
    metric: str | Sequence[str] = (),
    by_length: str | None = None,
    length_of: LengthOf = "source",
    length_in: LengthIn = "tokens",
    merge_below: int = 0,
    resampling: Resampling = DEFAULT_RESAMPLING,
    ensemble: bool = False,
    no_attention: bool = False,
    reuse_hypotheses: bool = False,
    json: str | Path | None = None,
    report: str | Path | None = None,
    plots: PlotFormat | None = None,
    csv: str | Path | None = None,
    latex: str | Path | None = None,
    device: str = "auto",
    precision: str = "auto",
    show_progress: bool = False,
    **search: Any,
) -> Report:
    """Translate test sets and score runs, with the options of `seq2seq evaluate`; `search` are
    those of the search, for example `beam_size=1`. `Report.data` has plain values. If no file is
    named, the report goes to the first run.

    >>> evaluate("runs/a", report="a.html").data["sets"][0]["measures"][0]["runs"][0]["score"]  # doctest: +SKIP

    Raises:
        UsageError: options contradict each other, or runs do not go together.
        UserError: a run or a file cannot be read, or a report cannot be written.
    """
    files = {"json": json, "report": report, "csv": csv, "latex": latex}
    metrics = (metric,) if isinstance(metric, str) else tuple(dict.fromkeys(metric))
    return evaluate_systems(
        _make_systems(runs, search, device, precision, ensemble=ensemble),
        [split] if isinstance(split, str) else split,
        None if source is None else Path(source),
        [Path(reference)] if isinstance(reference, str | Path) else [*map(Path, reference)],
        concatenate,
        settings=Settings(by_length, length_of, metrics, resampling, merge_below, length_in),
        files={part: Path(path) for part, path in files.items() if path is not None},
        plots=plots,
        reuse_hypotheses=reuse_hypotheses,
        no_attention=no_attention,
        show_progress=show_progress,
    )


def evaluate_systems(
    systems: Sequence[System],
    splits: Sequence[str],
    source: Path | None,
    references: Sequence[Path],
    concatenate: Sequence[int],
    *,
    settings: Settings,
    files: dict[str, Path],
    plots: PlotFormat | None,
    reuse_hypotheses: bool,
    no_attention: bool,
    show_progress: bool,
) -> Report:
    for option, value, kind in (
        ("of", settings.length_of, LengthOf),
        ("in", settings.length_in, LengthIn),
    ):
        if value not in get_args(kind):
            raise UsageError(
                f"--length-{option} {value!r}: expected one of {', '.join(get_args(kind))}"
            )
    for metric in settings.metrics:
        Measure(metric, [])  # raises if there is no such metric
    if settings.by_length is not None:
        parse_edges(settings.by_length)
    singles = [system for system in systems if not system.is_ensemble]
    if is_named := bool(files):
        check_report_files(files, [*([source] if source else []), *references])
        hyps_dirs = _named_hyps_dirs(systems, files)
    else:
        files = _files_in_run(systems, source, splits, concatenate)
        hyps_dirs = [system.hyps_dir if files else None for system in systems]
    runs = [system.runs[0] for system in singles]
    sets = find_sets(runs, splits, source=source, references=references, concatenate=concatenate)
    has_page = files.get("report", Path()).suffix == ".html"
    options = {
        "reuse_hypotheses": reuse_hypotheses,
        "keep_maps": has_page,
        "show_progress": show_progress,
    }
    translations = [
        [translate_set(system, test_set, hyps_dir=hyps_dir, **options) for test_set in sets]
        for system, hyps_dir in zip(systems, hyps_dirs, strict=True)
    ]
    report = _score(sets, systems, translations, settings, no_attention=no_attention)
    plots = plots or ("png" if files and not is_named else None)

    def page() -> str:
        return html_report(report, sets, translations, [system.history() for system in systems])

    if written := write_report_files(report, files, plots, page, is_named=is_named):
        log.info("written: %s", ", ".join(map(str, written)))
    return report


def _make_systems(
    runs: str | Path | Run | Sequence[str | Path | Run] | None,
    search: dict[str, Any],
    device: str,
    precision: str,
    *,
    ensemble: bool,
) -> list[System]:
    """The runs, then their ensemble if it is requested."""
    run_dirs = open_runs(runs)
    if not run_dirs:
        raise UsageError("no run to evaluate: name at least one")
    configs = [run.config for run in run_dirs]
    for run in run_dirs:
        if run.last_dir.exists() and not run.is_finished():
            log.warning(
                "%s: its training has not finished; its best model so far is evaluated", run.path
            )
    names = run_names([run.path for run in run_dirs], configs)
    systems = [
        System(
            name,
            [run],
            [config],
            options={**search, "n_best": 1},
            device=device,
            precision=precision,
        )
        for name, run, config in zip(names, run_dirs, configs, strict=True)
    ]
    _ = systems[0].resolved_precision  # an error before data is prepared
    if not ensemble:
        return systems
    if len(run_dirs) == 1:
        raise UsageError(f"--ensemble with one run ({run_dirs[0].path}): name two or more")
    check_alike(run_dirs)
    return [*systems, make_ensemble(systems)]


def _score(
    sets: Sequence[EvaluationSet],
    systems: Sequence[System],
    translations: Sequence[list[SetTranslations]],
    settings: Settings,
    *,
    no_attention: bool,
) -> Report:
    data = systems[0].config.data
    if data.layout.vector_column is not None and settings.length_of == "source":
        log.info("lengths: those of the references, because the name of a file of vectors has none")
        settings = replace(settings, length_of="reference")
    metric = systems[0].config.train.validation.metric
    if not settings.metrics:
        leads = metric in METRICS and METRICS[metric].is_scored_by_length
        settings = replace(
            settings, metrics=tuple(dict.fromkeys([*([metric] if leads else []), *DEFAULT_METRICS]))
        )
    languages = Languages(
        data.source_name, data.target_language, "files" if sets[0].is_file else data.corpus
    )
    by_system = dict(zip((system.name for system in systems), translations, strict=True))
    analyses = []
    if not no_attention:
        analyses = [_analyze(sets, system, by_system[system.name], languages) for system in systems]
    runs = [system for system in systems if not system.is_ensemble]
    texts = [system.runs[0].text_hashes["train"] for system in runs]
    arms = find_arms([system.name for system in runs], [system.config for system in runs], texts)
    arms += [
        Arm(system.name, (index,), ()) for index, system in enumerate(systems) if system.is_ensemble
    ]
    scored = score_sets(
        sets, by_system, languages=languages, settings=settings, arms=arms, analyses=analyses
    )
    described = [
        {
            **system.describe(),
            "seconds": round(sum(one.seconds for one in by_system[system.name]), 1),
            "is_reused": all(one.is_reused for one in by_system[system.name]),
        }
        for system in systems
    ]
    environment = describe_environment(sys.argv, resolve_device(systems[0].device))
    return Report(scored, described, environment)


def _analyze(
    sets: Sequence[EvaluationSet],
    system: System,
    translations: Sequence[SetTranslations],
    languages: Languages,
) -> list[AttentionStatistics]:
    """The attention of a system on each set; of an ensemble, from its texts alone, because forced
    decoding takes one run."""
    translator = None if system.is_ensemble else system.translator
    batch_size = system.search.batch_size
    with suggest_smaller_batch(batch_size):
        return [
            analyze_attention(
                test_set, translated.lines, languages, translator, batch_size=batch_size
            )
            for test_set, translated in zip(sets, translations, strict=True)
        ]


def _files_in_run(
    systems: Sequence[System],
    source: Path | None,
    splits: Sequence[str],
    concatenate: Sequence[int],
) -> dict[str, Path]:
    """The default files in the first run, `report.json` and `report.md` for the test sets. Whatever
    differs is in the name, so that it does not replace them: `report.comparison`, `report.valid`,
    `report.files.news.de`. None if the run cannot be written to."""
    parts = [
        "report",
        *(["comparison"] if sum(not system.is_ensemble for system in systems) > 1 else []),
    ]
    parts += ["files", set_name(source)] if source else list(dict.fromkeys(splits))
    name = ".".join([*parts, *(f"x{k}" for k in dict.fromkeys(concatenate))]) + systems[0].variation
    folder = systems[0].runs[0].path
    files = {"json": folder / f"{name}.json", "report": folder / f"{name}.md"}
    if files["json"].exists():
        log.info("%s: replaced; to keep both, add --json FILE", files["json"])
    try:
        for file in files.values():
            check_writable(file)
    except UserError as error:
        log.warning("%s; the scores are shown, not saved: --json FILE saves them elsewhere", error)
        return {}
    return files


def _named_hyps_dirs(systems: Sequence[System], files: Mapping[str, Path]) -> list[Path | None]:
    """Folders beside the JSON for the hypotheses of each system; None: they are not saved, for lack
    of a JSON file."""
    if "json" not in files or (files["json"].exists() and not files["json"].is_file()):
        return [None] * len(systems)
    names = [
        ENSEMBLE_HYPS if system.is_ensemble else system.runs[0].path.resolve().name
        for system in systems
    ]
    if len(set(names)) < len(names):
        names = [f"{name}-{number}" for number, name in enumerate(names, start=1)]
    folder = files["json"].with_name(f"{files['json'].name.removesuffix('.json')}.hyps")
    return [folder / name for name in names]
