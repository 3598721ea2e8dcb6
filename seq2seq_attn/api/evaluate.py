"""Translate test sets and score runs: overall, by sentence length, and against each other.

A system is a run, an ensemble of all runs, or a file of translations. An arm is a group of runs
that differ only in their seed; any other system is an arm by itself. Each arm is compared with the
first arm.

Lengths are counted in spaCy tokens or in characters, so that all runs share the same buckets,
whatever tokenizers they use.
"""

import logging
import sys
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, get_args

from seq2seq_attn.api.outputs import Outputs, find_outputs
from seq2seq_attn.errors import UsageError, UserError
from seq2seq_attn.evaluation.attention import analyze_attention
from seq2seq_attn.evaluation.hypotheses import HypothesisFile, find_hypotheses, languages_by_suffix
from seq2seq_attn.evaluation.names import Arm, find_arms, run_names
from seq2seq_attn.evaluation.scoring import Settings, score_sets
from seq2seq_attn.evaluation.systems import System, make_ensemble
from seq2seq_attn.evaluation.test_sets import EvaluationSet, Languages, find_sets, set_name
from seq2seq_attn.evaluation.translations import SetTranslations, translate_set
from seq2seq_attn.files import list_names
from seq2seq_attn.metrics.attention import AttentionStatistics
from seq2seq_attn.metrics.bleu import Measure
from seq2seq_attn.metrics.by_length import parse_edges
from seq2seq_attn.metrics.significance import DEFAULT_RESAMPLING, Resampling
from seq2seq_attn.metrics.table import DEFAULT_METRICS, LengthIn, LengthOf, find_metric
from seq2seq_attn.report.files import write_report_files
from seq2seq_attn.report.html import html_report
from seq2seq_attn.report.pages import Report
from seq2seq_attn.run import Run, Runs, open_runs
from seq2seq_attn.run.history import Validation
from seq2seq_attn.runtime.device import resolve_device
from seq2seq_attn.runtime.environment import describe_environment
from seq2seq_attn.runtime.extras import require
from seq2seq_attn.runtime.memory import suggest_smaller_batch
from seq2seq_attn.text.corpus import Text, check_scripts
from seq2seq_attn.text.glossary import read_glossary
from seq2seq_attn.text.tokenizers.words import words_name
from seq2seq_attn.translate.figure import PlotFormat
from seq2seq_attn.translate.load import check_alike

AnySystem = System | HypothesisFile
Names = str | Path | Sequence[str | Path]

log = logging.getLogger(__name__)


def evaluate(
    runs: Runs = None,
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
    resampling: Resampling = DEFAULT_RESAMPLING,
    ensemble: bool = False,
    no_attention: bool = False,
    reuse_hypotheses: bool = False,
    json: str | Path | None = None,
    report: str | Path | None = None,
    plots: PlotFormat | None = None,
    csv: str | Path | None = None,
    device: str = "auto",
    precision: str = "auto",
    **search: Any,
) -> Report:
    """Translate test sets and score runs, as `seq2seq evaluate` does, into files or the first run.
    `search` holds options such as `beam_size` and `glossary`; `Report.data` holds plain values.

    >>> [test_set] = evaluate("runs/quickstart").data["sets"]
    >>> test_set["name"], test_set["measures"][0]["runs"][0]["score"] > 50
    ('test', True)

    Raises:
        UsageError: options contradict each other, or the runs cannot be compared.
        UserError: a run or a file cannot be read, or a report cannot be written.
    """
    _check_plots(plots)
    settings = _make_settings(by_length, length_of, length_in, metric, resampling)
    opened = [] if hypotheses and not runs else open_runs(runs)
    systems = _make_systems(opened, search, device, precision, ensemble=ensemble)
    files = find_hypotheses(list_names(hypotheses), [system.name for system in systems])
    source_path = None if source is None else Path(source)
    inputs = _Inputs(list_names(split), source_path, _paths(reference), concatenate, files)
    named = {"json": json, "report": report, "csv": csv}
    outputs = find_outputs(named, inputs.paths(), inputs.words(), systems)
    languages, sets = inputs.find_sets(systems, length_in)
    translations = _translate(systems, files, sets, outputs, reuse_hypotheses=reuse_hypotheses)
    scored: list[AnySystem] = [*systems, *files]
    result = _score(sets, scored, translations, settings, languages, no_attention=no_attention)
    _write(result, outputs, plots, sets, scored, translations)
    return result


class _Inputs(NamedTuple):
    """The test sets to evaluate on, which are splits of the runs or files; and files of
    translations."""

    splits: Sequence[str]
    source: Path | None
    """the source file, if files are evaluated"""
    references: Sequence[Path]
    concatenate: Sequence[int]
    """numbers of sentence pairs that are concatenated into one pair, for one test set each"""
    hypotheses: Sequence[HypothesisFile]

    def paths(self) -> list[Path]:
        """Return the files that are read."""
        sources = [] if self.source is None else [self.source]
        return [*sources, *self.references, *(file.path for file in self.hypotheses)]

    def words(self) -> list[str]:
        """Return the words by which file names say what is evaluated. There are no words for the
        test sets of the corpus, the default."""
        words = list(dict.fromkeys(self.splits))
        if self.source:
            words = ["files", set_name(self.source)]
        words += [f"x{k}" for k in dict.fromkeys(self.concatenate)]
        return [*words, "hypotheses"] if self.hypotheses else words

    def find_languages(self, systems: Sequence[System]) -> Languages:
        """Return the languages of the first run. Without a run, the suffixes of the files name the
        languages.

        Raises:
            UsageError: there is neither a run nor a source file.
        """
        if systems:
            data = systems[0].config.data
            corpus = "files" if self.source else data.corpus
            return Languages(data.source_name, data.target_language, corpus)
        if self.source is None:
            raise UsageError("--hypotheses: name a run too, or --source and --reference")
        return languages_by_suffix([self.source, *self.references[:1]])

    def find_sets(
        self, systems: Sequence[System], length_in: LengthIn
    ) -> tuple[Languages, list[EvaluationSet]]:
        """Find the languages and the test sets. Raises UsageError if there are several sets for a
        file of translations, and the errors of `find_languages`, of `find_sets` in
        `evaluation/test_sets.py`, and of `check_scripts`."""
        languages = self.find_languages(systems)
        sets = find_sets(
            [system.runs[0] for system in systems if not system.is_ensemble],
            self.splits,
            source=self.source,
            references=self.references,
            concatenate=self.concatenate,
        )
        if self.hypotheses and len(sets) > 1:
            names = ", ".join(test_set.name for test_set in sets)
            raise UsageError(
                "--hypotheses: a file holds the translations of one test set; choose one set with "
                f"--split NAME, and at most one --concatenate: {names}"
            )
        if self.source:
            sides = (languages.source, languages.target)
            check_scripts(Text((self.source, self.references[0]), sides))
        if length_in == "tokens":
            words_name(languages.target)  # raises UserError now if spaCy is not installed
        return languages, sets


def _paths(names: Names) -> list[Path]:
    """Return the paths of one file or several files."""
    return list(map(Path, list_names(names)))


def _check_plots(plots: PlotFormat | None) -> None:
    """Raise UserError if plots are asked for and matplotlib is not installed."""
    if plots is not None:
        require("plots", "matplotlib")


def _translate(
    systems: Sequence[System],
    files: Sequence[HypothesisFile],
    sets: Sequence[EvaluationSet],
    outputs: Outputs,
    *,
    reuse_hypotheses: bool,
) -> list[list[SetTranslations]]:
    """Translate each set with each system, and read the translations of each set from each file.

    Returns:
        For each system, and then for each file, the translations of each set.
    """
    hyps_dirs = outputs.find_hyps_dirs(systems)
    keep_maps = outputs.files.get("report", Path()).suffix == ".html"
    translate = partial(translate_set, reuse_hypotheses=reuse_hypotheses, keep_maps=keep_maps)
    translations = []
    for system, hyps_dir in zip(systems, hyps_dirs, strict=True):
        translations.append([translate(system, test_set, hyps_dir=hyps_dir) for test_set in sets])
    for file in files:
        translations.append([file.read(test_set) for test_set in sets])
    return translations


def _write(
    report: Report,
    outputs: Outputs,
    plots: PlotFormat | None,
    sets: Sequence[EvaluationSet],
    systems: Sequence[AnySystem],
    translations: Sequence[list[SetTranslations]],
) -> None:
    """Write the files of the report. If the files are in a run, plots are written too, even if
    `plots` is None, provided that matplotlib is installed."""
    histories: list[tuple[dict[str, Any], list[Validation]]] = []
    for system in systems:
        histories.append(system.history() if isinstance(system, System) else ({}, []))
    page = partial(html_report, report, sets, translations, histories)
    if plots is None and outputs.files and not outputs.is_named:
        try:
            require("plots", "matplotlib")
            plots = "png"
        except UserError as error:
            log.warning("no plots: %s", error)
    written = write_report_files(report, outputs.files, plots, page, is_named=outputs.is_named)
    if written:
        log.info("written: %s", ", ".join(map(str, written)))


def _make_settings(
    by_length: str | None,
    length_of: LengthOf,
    length_in: LengthIn,
    metric: str | Sequence[str],
    resampling: Resampling,
) -> Settings:
    """Check the options of the scores, and return them as settings.

    Raises:
        UsageError: a value is not allowed, or a metric is unknown.
    """
    for option, value, kind in (("of", length_of, LengthOf), ("in", length_in, LengthIn)):
        allowed = get_args(kind)
        if value not in allowed:
            raise UsageError(f"--length-{option} {value!r}: expected one of {', '.join(allowed)}")
    metrics = tuple(dict.fromkeys(list_names(metric)))
    for name in metrics or DEFAULT_METRICS:
        Measure(name, [])  # raises an error for an unknown metric, or if sacreBLEU is missing
    if by_length is not None:
        parse_edges(by_length)  # raises an error for invalid edges
    return Settings(by_length, length_of, metrics, resampling, length_in)


def _make_systems(
    opened: Sequence[Run],
    search: dict[str, Any],
    device: str,
    precision: str,
    *,
    ensemble: bool,
) -> list[System]:
    """Return a system for each run, followed by the ensemble of all runs if `ensemble`.

    Raises UsageError if the device or precision is unknown, or if an ensemble has a single run or
    runs that do not match; and UserError if the glossary cannot be read.
    """
    if not opened:
        return []
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
    analyses = []
    by_system = {}
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
    """Return the settings of the scores, completed by facts of a run.

    If the source is a file of vectors, lengths are counted in the references. If the user names no
    metric, the metric of the run's validation comes before the default metrics.
    """
    if system.config.data.layout.vector_column is not None and settings.length_of == "source":
        log.info("lengths: those of the references, because the name of a file of vectors has none")
        settings = replace(settings, length_of="reference")
    metric = system.config.train.validation.metric
    names_no_metric = not settings.metrics
    # The perplexity is no score of translations.
    if names_no_metric and metric != "perplexity" and find_metric(metric).is_scored_by_length:
        settings = replace(settings, metrics=tuple(dict.fromkeys([metric, *DEFAULT_METRICS])))
    return settings


def _find_arms(systems: Sequence[AnySystem]) -> list[Arm]:
    """Group runs that differ only in their seed into arms. Any other system is an arm by itself."""
    # Runs come before ensembles and files, so a run has the same index in `runs` and `systems`.
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
    """Analyze the attention of a system on each test set.

    Attention is computed by forced decoding, which needs a single run. For an ensemble or a file of
    translations, only the words of the translations are counted.
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
