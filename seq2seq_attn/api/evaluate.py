"""Evaluation: translate test sets and score runs overall, by sentence length, and against each
other.

If there are several runs, each is compared with the first run. Lengths are counted in spaCy tokens
or in characters, so that all runs share the same buckets, whatever tokenizers they use.

A system is a run or an ensemble of all runs. An arm is a group of runs that differ only in their
seed; an ensemble is an arm by itself.
"""

import logging
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, get_args

from seq2seq_attn.errors import UsageError, UserError
from seq2seq_attn.evaluation.attention import analyze_attention
from seq2seq_attn.evaluation.hypotheses import HypothesisFile, find_hypotheses, languages_by_suffix
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
from seq2seq_attn.metrics.table import DEFAULT_METRICS, LengthIn, LengthOf, find_metric
from seq2seq_attn.report.files import check_report_files, write_report_files
from seq2seq_attn.report.html import html_report
from seq2seq_attn.report.pages import Report
from seq2seq_attn.run import Run, open_runs
from seq2seq_attn.runtime.device import resolve_device
from seq2seq_attn.runtime.environment import describe_environment
from seq2seq_attn.runtime.memory import suggest_smaller_batch
from seq2seq_attn.text.glossary import read_glossary
from seq2seq_attn.translate.figure import PlotFormat
from seq2seq_attn.translate.load import check_alike

AnySystem = System | HypothesisFile
Names = str | Path | Sequence[str | Path]

log = logging.getLogger(__name__)


def evaluate(
    runs: str | Path | Run | Sequence[str | Path | Run] | None = None,
    *,
    split: str | Sequence[str] = (),
    source: str | Path | None = None,
    reference: Names = (),
    hypotheses: Names = (),
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
    **search: Any,
) -> Report:
    """Translate test sets and score runs, with the options of `seq2seq evaluate`. `search` holds
    options of the search, for example `beam_size=1`, and `glossary`, a file. `Report.data` holds
    the scores as plain values. Without an output file, the report goes into the first run.

    >>> evaluate("runs/a").data["sets"][0]["measures"][0]["runs"][0]["score"]  # doctest: +SKIP

    Raises:
        UsageError: options contradict each other, or the runs cannot be compared.
        UserError: a run or a file cannot be read, or a report cannot be written.
    """
    metrics = (metric,) if isinstance(metric, str) else tuple(dict.fromkeys(metric))
    settings = Settings(by_length, length_of, metrics, resampling, merge_below, length_in)
    _check_settings(settings)
    systems: list[System] = []
    if runs or not hypotheses:
        systems = _make_systems(runs, search, device, precision, ensemble=ensemble)
    others = find_hypotheses(_list(hypotheses), [system.name for system in systems])
    inputs = _Inputs(
        _list(split),
        Path(source) if source else None,
        list(map(Path, _list(reference))),
        concatenate,
    )
    named = {"json": json, "report": report, "csv": csv, "latex": latex}
    outputs = _find_outputs(named, inputs, systems, others)
    languages = inputs.find_languages(systems)
    sets = inputs.find_sets(systems)
    translations = _translate(systems, sets, outputs, reuse_hypotheses=reuse_hypotheses)
    translations += [[other.read(test_set) for test_set in sets] for other in others]
    scored: list[AnySystem] = [*systems, *others]
    result = _score(sets, scored, translations, settings, languages, no_attention=no_attention)
    histories = [system.history() for system in systems] + [({}, [])] * len(others)
    page = partial(html_report, result, sets, translations, histories)
    if plots is None and outputs.files and not outputs.is_named:
        plots = "png"
    written = write_report_files(result, outputs.files, plots, page, is_named=outputs.is_named)
    if written:
        log.info("written: %s", ", ".join(map(str, written)))
    return result


class _Inputs(NamedTuple):
    """The test sets to evaluate on: splits of the runs, or files."""

    splits: Sequence[str]
    source: Path | None
    references: Sequence[Path]
    concatenate: Sequence[int]

    def words(self) -> list[str]:
        """Return the words that tell these sets from the default in names of files."""
        words = list(dict.fromkeys(self.splits))
        if self.source:
            words = ["files", set_name(self.source)]
        return [*words, *(f"x{k}" for k in dict.fromkeys(self.concatenate))]

    def find_languages(self, systems: Sequence[System]) -> Languages:
        """Return the languages of the first run, or else those that the names of files tell.

        Raises UsageError if there is neither a run nor a file.
        """
        if systems:
            data = systems[0].config.data
            corpus = "files" if self.source else data.corpus
            return Languages(data.source_name, data.target_language, corpus)
        if self.source is None:
            raise UsageError("--hypotheses: name a run too, or --source and --reference")
        return languages_by_suffix([self.source, *self.references[:1]])

    def find_sets(self, systems: Sequence[System]) -> list[EvaluationSet]:
        """Return the sets. Raises as `find_sets` of `evaluation/test_sets.py`."""
        return find_sets(
            [system.runs[0] for system in systems if not system.is_ensemble],
            self.splits,
            source=self.source,
            references=self.references,
            concatenate=self.concatenate,
        )


class _Outputs(NamedTuple):
    """The files of a report by kind, and whether the user named them."""

    files: Mapping[str, Path]
    is_named: bool


def _list(names: Names) -> list[str]:
    """Return one or several names as a list."""
    return [str(names)] if isinstance(names, str | Path) else list(map(str, names))


def _find_outputs(
    named: Mapping[str, str | Path | None],
    inputs: _Inputs,
    systems: Sequence[System],
    others: Sequence[HypothesisFile],
) -> _Outputs:
    """Check the files that are named, or choose files in the first run. Raises as
    `check_report_files`."""
    files = {kind: Path(path) for kind, path in named.items() if path is not None}
    if files:
        paths = [*inputs.references, *(other.path for other in others)]
        check_report_files(files, [inputs.source, *paths] if inputs.source else paths)
    elif systems:
        words = inputs.words()
        if others:
            words.append("hypotheses")
        return _Outputs(_choose_files(systems, words), False)
    return _Outputs(files, bool(files))


def _translate(
    systems: Sequence[System],
    sets: Sequence[EvaluationSet],
    outputs: _Outputs,
    *,
    reuse_hypotheses: bool,
) -> list[list[SetTranslations]]:
    """Return the translations of each set by each system."""
    hyps_dirs = _find_hyps_dirs(systems, outputs.files, is_named=outputs.is_named)
    keep_maps = outputs.files.get("report", Path()).suffix == ".html"
    translate = partial(translate_set, reuse_hypotheses=reuse_hypotheses, keep_maps=keep_maps)
    translations = []
    for system, hyps_dir in zip(systems, hyps_dirs, strict=True):
        translations.append([translate(system, test_set, hyps_dir=hyps_dir) for test_set in sets])
    return translations


def _check_settings(settings: Settings) -> None:
    """Check the options of the scores.

    Raises:
        UsageError: a value is not allowed.
        UserError: a metric is unknown.
    """
    choices = {"of": get_args(LengthOf), "in": get_args(LengthIn)}
    for option, value in (("of", settings.length_of), ("in", settings.length_in)):
        if value not in choices[option]:
            allowed = ", ".join(choices[option])
            raise UsageError(f"--length-{option} {value!r}: expected one of {allowed}")
    for metric in settings.metrics:
        Measure(metric, [])  # raises UserError for an unknown metric
    if settings.by_length is not None:
        parse_edges(settings.by_length)


def _make_systems(
    runs: str | Path | Run | Sequence[str | Path | Run] | None,
    search: dict[str, Any],
    device: str,
    precision: str,
    *,
    ensemble: bool,
) -> list[System]:
    """Open the runs and return a system for each, followed by their ensemble if requested.

    Raises UsageError if there is no run, or if an ensemble has one run or runs that do not match.
    """
    opened = open_runs(runs)
    if not opened:
        raise UsageError("no run to evaluate: name at least one")
    for run in opened:
        if run.last_dir.exists() and not run.is_finished():
            log.warning(
                "%s: its training has not finished; its best model so far is evaluated", run.path
            )
    names = run_names([run.path for run in opened], [run.config for run in opened])
    options = {**search, "n_best": 1}
    glossary = options.pop("glossary", None)
    make = partial(
        System,
        options=options,
        device=device,
        precision=precision,
        glossary=read_glossary(glossary) if glossary else (),
    )
    systems = [make(name, [run]) for name, run in zip(names, opened, strict=True)]
    _ = systems[0].resolved_precision  # raises now if the device or precision is unknown
    if not ensemble:
        return systems
    if len(opened) == 1:
        raise UsageError(f"--ensemble with one run ({opened[0].path}): name two or more")
    check_alike(opened)
    return [*systems, make_ensemble(systems)]


def _score(
    sets: Sequence[EvaluationSet],
    systems: Sequence[AnySystem],
    translations: Sequence[list[SetTranslations]],
    settings: Settings,
    languages: Languages,
    *,
    no_attention: bool,
) -> Report:
    """Score the translations and analyze the attention of each system; return the report."""
    first = systems[0]
    device = "cpu"
    if isinstance(first, System):
        device = first.device
        settings = _adapt(settings, first)
    analyses: list[list[AttentionStatistics]] = []
    by_system: dict[str, list[SetTranslations]] = {}
    described = []
    for system, translated in zip(systems, translations, strict=True):
        by_system[system.name] = translated
        if not no_attention:
            analyses.append(_analyze(sets, system, translated, languages))
        seconds = sum(hypotheses.seconds for hypotheses in translated)
        is_reused = all(hypotheses.is_reused for hypotheses in translated)
        described.append(
            {**system.describe(), "seconds": round(seconds, 1), "is_reused": is_reused}
        )
    scored = score_sets(
        sets,
        by_system,
        languages=languages,
        settings=settings,
        arms=_find_arms(systems),
        analyses=analyses,
    )
    environment = describe_environment(sys.argv, resolve_device(device))
    return Report(scored, described, environment)


def _adapt(settings: Settings, system: System) -> Settings:
    """Return the settings with those that follow from a run.

    If the source is a file of vectors, lengths are counted in the references. The default metrics
    are preceded by the validation metric if it is scored by length.
    """
    if system.config.data.layout.vector_column is not None and settings.length_of == "source":
        log.info("lengths: those of the references, because the name of a file of vectors has none")
        settings = replace(settings, length_of="reference")
    metric = system.config.train.validation.metric
    has_default = not settings.metrics and metric != "perplexity"
    if has_default and find_metric(metric).is_scored_by_length:
        settings = replace(settings, metrics=tuple(dict.fromkeys([metric, *DEFAULT_METRICS])))
    return settings


def _find_arms(systems: Sequence[AnySystem]) -> list[Arm]:
    """Group runs that differ only in their seed into arms. Any other system is an arm by itself."""
    runs = [system for system in systems if isinstance(system, System) and not system.is_ensemble]
    texts = [system.runs[0].text_hashes["train"] for system in runs]
    arms = find_arms([system.name for system in runs], [system.config for system in runs], texts)
    for index, system in enumerate(systems):
        if system not in runs:
            arms.append(Arm(system.name, (index,), ()))
    return arms


def _analyze(
    sets: Sequence[EvaluationSet],
    system: AnySystem,
    translations: Sequence[SetTranslations],
    languages: Languages,
) -> list[AttentionStatistics]:
    """Return statistics of the attention of a system, one per test set.

    Forced decoding takes a single run. The statistics of any other system are therefore computed
    from the texts of its translations, without its attention.
    """
    translator = None
    batch_size = 1
    if isinstance(system, System) and not system.is_ensemble:
        translator = system.translator
        batch_size = system.search.batch_size
    analyze = partial(
        analyze_attention, languages=languages, translator=translator, batch_size=batch_size
    )
    lines = [translated.lines for translated in translations]
    with suggest_smaller_batch(batch_size):
        return list(map(analyze, sets, lines))


def _choose_files(systems: Sequence[System], words: Sequence[str]) -> dict[str, Path]:
    """Return the default output files, by option; no files if the first run is not writable.

    The files are `report.json` and `report.md` in the directory of the first run. The name of any
    other evaluation says how it differs, so that it does not replace these files. Examples are
    `report.comparison.md` for several runs, `report.valid.md` for the validation set, and
    `report.files.news.de.md` for a file `news.de`.
    """
    singles = [system for system in systems if not system.is_ensemble]
    kind = "report.comparison" if len(singles) > 1 else "report"
    name = ".".join([kind, *words]) + systems[0].variation
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


def _find_hyps_dirs(
    systems: Sequence[System], files: Mapping[str, Path], *, is_named: bool
) -> list[Path | None]:
    """Return a folder for the translations of each system.

    The folder is in the directory of the run. If the user names a JSON file, the folder is beside
    this file. Translations are saved only with a JSON file; otherwise each folder is None.
    """
    file = files.get("json")
    if file is None or (file.exists() and not file.is_file()):
        return [None] * len(systems)
    if not is_named:
        return [system.hyps_dir for system in systems]
    names = []
    for system in systems:
        names.append(ENSEMBLE_HYPS if system.is_ensemble else system.runs[0].path.resolve().name)
    if len(set(names)) < len(names):
        names = [f"{name}-{number}" for number, name in enumerate(names, start=1)]
    folder = file.with_name(f"{file.name.removesuffix('.json')}.hyps")
    return [folder / name for name in names]
