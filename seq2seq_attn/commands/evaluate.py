"""Evaluation: run directories, or saved hypotheses, to scores: overall, by sentence length, and against each other.

Several runs are compared with the first one. Lengths are counted in spaCy tokens, whatever tokenises a run, so that all
runs are cut into the same buckets.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path

from seq2seq_attn.errors import UsageError
from seq2seq_attn.evaluation.arms import find_arms, named_arms
from seq2seq_attn.evaluation.attention import Judge
from seq2seq_attn.evaluation.attention_scores import Judgement
from seq2seq_attn.evaluation.names import path_names, run_names
from seq2seq_attn.evaluation.runs import Choices, EvaluatedRun
from seq2seq_attn.evaluation.scores import DEFAULT_RESAMPLING, Resampling, bucket_measures
from seq2seq_attn.evaluation.sets import GERMAN_TO_ENGLISH, EvaluationSet, Languages, LengthOf, stitched_name
from seq2seq_attn.evaluation.test_sets import find_sets, set_name, set_of_files
from seq2seq_attn.evaluation.texts import RunTexts
from seq2seq_attn.files import check_writable, write_json, write_text
from seq2seq_attn.metrics.bleu import DEFAULT_MEASURES, MeasureName
from seq2seq_attn.report.build import Report, Settings, build_report
from seq2seq_attn.report.html import html_report
from seq2seq_attn.report.plots import plot_by_length, plot_retention
from seq2seq_attn.run_dir import RunDir
from seq2seq_attn.runtime.device import resolve_device
from seq2seq_attn.text.corpus import read_lines

log = logging.getLogger(__name__)


def evaluate(
    runs: Sequence[str | Path],
    *,
    splits: Sequence[str] = (),
    source: Path | None = None,
    reference: Path | None = None,
    stitch: Sequence[int] = (),
    by_length: str | None = None,
    length_of: LengthOf = "source",
    merge_below: int = 0,
    beam_size: int | None = None,
    length_penalty: float | None = None,
    max_length_ratio: float | None = None,
    batch_size: int | None = None,
    measures: Sequence[MeasureName] = DEFAULT_MEASURES,
    resampling: Resampling = DEFAULT_RESAMPLING,
    json_path: Path | None = None,
    report_path: Path | None = None,
    device: str = "auto",
    precision: str = "auto",
    reuse_hypotheses: bool = False,
    judge_attention: bool = True,
    show_progress: bool = False,
) -> Report:
    """Translate, score, write the report. The first run is what the others are compared with; runs that differ in
    nothing but the seed are grouped, and their means compared too.

    Args:
        splits: parts of the runs' corpus; none: its test sets, each apart and pooled. Or, instead of splits:
        source: one sentence a line, plain or .gz, and `reference`, its translation.
        stitch: for each number K, sets of K pairs joined to one (1: as they are); none: as they are.
        by_length: first lengths of the buckets (`9,12,15`), or `quantiles:N`; None: as fits the corpus.
        length_of: the side whose tokens count as length.
        merge_below: a bucket of fewer pairs is joined to its smaller neighbour; 0: thin ones are marked only.
        beam_size: None: as each run is configured; so too `length_penalty`, `max_length_ratio` and
            `batch_size`.
        json_path: where the report goes, plots and Markdown (unless `report_path`) beside it; None: to the first run,
            as `report.json`, `report.comparison.json` or, of a file, `report.<its name>.json`.
        precision: arithmetic of translating, `auto`, `fp32`, `bf16` or `int8`, as in `translator.load`.
        reuse_hypotheses: take `hyps/<split>.txt` if the same model made it of the same lines in the same way.
        judge_attention: have runs read their hypotheses, and references with gold links: entropy, coverage, alignment.

    Raises:
        UsageError: files and splits together, one file without the other, an unknown split, runs of different data.
        UserError: a run or a file that cannot be read, a report that cannot be written.
    """
    _check_request(runs, "run to evaluate", report_path)
    run_dirs = [RunDir(run) for run in runs]
    json_path = json_path or run_dirs[0].path / _report_name(len(runs), source)
    for path in (json_path, report_path):
        if path is not None:
            check_writable(path)
    configs = [run.config() for run in run_dirs]
    names = run_names([run.path for run in run_dirs], configs)
    sets = find_sets(run_dirs, configs, splits, source, reference, stitch=stitch, show_progress=show_progress)
    is_html = _is_html(report_path)
    choices = Choices(
        beam_size,
        length_penalty,
        max_length_ratio,
        batch_size,
        device,
        precision,
        reuse_hypotheses,
        is_html,
        show_progress,
    )
    evaluated = [EvaluatedRun(run, config, choices) for run, config in zip(run_dirs, configs, strict=True)]
    hypotheses = {name: [run.translate(one) for one in sets] for name, run in zip(names, evaluated, strict=True)}
    data = configs[0].data
    languages = Languages(data.source_language, data.target_language, "files" if source else data.corpus)
    of_runs = list(zip(evaluated, hypotheses.values(), strict=True))
    report = build_report(
        sets,
        hypotheses,
        [{"name": name, **run.describe()} for name, run in zip(names, evaluated, strict=True)],
        languages=languages,
        settings=Settings(by_length, length_of, tuple(measures), resampling, merge_below),
        arms=find_arms(names, configs),
        judgements=_judge(sets, of_runs, languages) if judge_attention else None,
        device=str(resolve_device(device)),
    )
    _write(report, json_path, report_path, sets, [run.texts() for run in evaluated])
    return report


def score_files(
    hypotheses: Sequence[Path],
    reference: Path,
    *,
    source: Path | None = None,
    languages: Languages = GERMAN_TO_ENGLISH,
    arms: Sequence[str] = (),
    by_length: str | None = None,
    length_of: LengthOf = "source",
    merge_below: int = 0,
    measures: Sequence[MeasureName] = DEFAULT_MEASURES,
    resampling: Resampling = DEFAULT_RESAMPLING,
    judge_attention: bool = True,
    json_path: Path | None = None,
    report_path: Path | None = None,
) -> Report:
    """Score saved hypotheses, one sentence a line, without any model; the first file is what the others are compared
    with. Without a source, lengths are those of the reference. Files are written only if `json_path` says where.

    Args:
        arms: for each file the name of its arm; files of one arm are its seeds. None: no file is grouped.
        judge_attention: count the words that hypotheses lack and have in excess, which needs no attention.

    Raises:
        UsageError: as `evaluate`, or not one arm for each file.
        UserError: a file that cannot be read, or files of different numbers of lines.
    """
    _check_request(hypotheses, "hypotheses to score", report_path)
    one = set_of_files(source, reference)
    if source is None:
        length_of = "reference"
    if arms and len(arms) != len(hypotheses):
        raise UsageError(f"{len(arms)} arms for {len(hypotheses)} files of hypotheses: name one for each")
    names = path_names(hypotheses)
    lines = [[read_lines(path)] for path in hypotheses]
    report = build_report(
        [one],
        dict(zip(names, lines, strict=True)),
        [{"name": name, "path": str(path)} for name, path in zip(names, hypotheses, strict=True)],
        languages=languages,
        settings=Settings(by_length, length_of, tuple(measures), resampling, merge_below),
        arms=named_arms(arms),
        judgements=_judge([one], [(None, of_system) for of_system in lines], languages) if judge_attention else None,
    )
    if json_path is not None:
        _write(report, json_path, report_path, [one], [RunTexts(of_system) for of_system in lines])
    return report


def _judge(
    sets: Sequence[EvaluationSet],
    of_runs: Sequence[tuple[EvaluatedRun | None, Sequence[list[str]]]],
    languages: Languages,
) -> list[list[Judgement]]:
    """What each run did on each set; without a run, what its texts tell."""
    judged: list[list[Judgement]] = [[] for _ in of_runs]
    for place, one in enumerate(sets):
        judge = Judge(one, languages)
        for found, (run, hypotheses) in zip(judged, of_runs, strict=True):
            lines = hypotheses[place]
            found.append(judge.judge(lines) if run is None else run.judge(judge, lines))
    return judged


def _write(
    report: Report, json_path: Path, report_path: Path | None, sets: Sequence[EvaluationSet], runs: Sequence[RunTexts]
) -> None:
    """report.json, and beside it the Markdown page and the plots; of several sets the pooled one is drawn. A report
    path that ends in .md is that of the Markdown page, one that ends in .html takes the HTML page."""
    stem = json_path.name.removesuffix(".json")
    suffix = stem.removeprefix("report")  # report.comparison.json -> bleu-by-length.comparison.png
    plots = []
    for drawn in report.drawn:
        measure = bucket_measures(list(drawn.scores))[0]
        name = f"{measure}-by-length{suffix if stem.startswith('report') else f'.{stem}'}"
        name = f"{stitched_name(name, drawn.stitch)}.png"
        plots.append(name)
        plot_by_length(json_path.with_name(name), drawn, measure=measure, unit=report.page.unit)
        if len(drawn.systems) > 1 and measure != "ter":
            plots.append(name.replace(measure, "retention", 1))
            plot_retention(json_path.with_name(plots[-1]), drawn, measure=measure, unit=report.page.unit)
    write_json(json_path, report.data)
    is_html = _is_html(report_path)
    page_path = json_path.with_name(f"{stem}.md") if report_path is None or is_html else report_path
    write_text(page_path, report.markdown(plots))
    written = [json_path, page_path, *map(json_path.with_name, plots)]
    if report_path is not None and is_html:
        write_text(report_path, html_report(report, sets, runs))
        written.append(report_path)
    log.info("written: %s", ", ".join(map(str, written)))


def _report_name(num_runs: int, source: Path | None) -> str:
    """The scores of a run's own test sets are not to be lost to those of some file."""
    parts = ["report", *(["comparison"] if num_runs > 1 else []), *([set_name(source)] if source else []), "json"]
    return ".".join(parts)


def _is_html(path: Path | None) -> bool:
    return path is not None and path.suffix == ".html"


def _check_request(paths: Sequence[str | Path], what: str, path: Path | None) -> None:
    if not paths:
        raise UsageError(f"no {what}: name at least one")
    if path is not None and path.suffix not in (".md", ".html"):
        raise UsageError(f"--report {str(path)!r}: name a file that ends in .md (Markdown) or .html (with attention)")
