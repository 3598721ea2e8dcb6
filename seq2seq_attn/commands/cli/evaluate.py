"""`seq2seq evaluate`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from seq2seq_attn.commands.cli.options import (
    BatchSize,
    BeamSize,
    ByLength,
    Concatenate,
    Debug,
    Device,
    Import,
    LengthIn,
    LengthOf,
    LengthPenalty,
    LengthSide,
    LengthUnit,
    MaxLengthRatio,
    Metric,
    Metrics,
    Plots,
    TranslationPrecision,
    check_runs,
    echo,
    is_terminal,
    only_newest_run,
)

if TYPE_CHECKING:
    from seq2seq_attn.commands.evaluate import EvaluationRequest
    from seq2seq_attn.evaluation.scoring import Settings
    from seq2seq_attn.evaluation.systems import Decoding
    from seq2seq_attn.report.files import ReportFiles
    from seq2seq_attn.search.options import SearchOptions


Runs = Annotated[
    list[Path] | None,
    typer.Argument(
        metavar="RUN", help="Run directories.", show_default="the run that finished last", callback=check_runs
    ),
]
Split = Annotated[
    list[str] | None,
    typer.Option(metavar="NAME", help="Split of the runs' corpus; may be repeated.", show_default="its test sets"),
]
Source = Annotated[
    Path | None, typer.Option(metavar="FILE", help="Instead of a split: sentences to translate, one per line.")
]
Reference = Annotated[Path | None, typer.Option(metavar="FILE", help="Reference translations of --source.")]
MergeBelow = Annotated[
    int, typer.Option(min=0, metavar="N", help="Join buckets under N pairs to their smaller neighbor.")
]
ReuseHypotheses = Annotated[
    bool,
    typer.Option("--reuse-hypotheses", help="Reuse saved translations of the same model and settings."),
]
Ensemble = Annotated[
    bool, typer.Option("--ensemble", help="Also score all runs as one model: the mean of their probabilities.")
]
NoAttention = Annotated[
    bool, typer.Option("--no-attention", help="Leave out entropy, coverage and alignment of the attention.")
]
Full = Annotated[bool, typer.Option("--full", help="Show every measure and test set, and attention statistics.")]
Json = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="JSON file for all scores; translations go beside it.",
        show_default="in the first run",
    ),
]
Report = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="Report, .md or .html; .html also shows sentences and attention.",
        show_default="in the first run",
    ),
]
PlotFormat = Annotated[
    Plots | None,
    typer.Option(
        metavar="NAME",
        help="Plots as png, svg or pdf, beside the report.",
        show_default="png in the first run; none elsewhere",
    ),
]
Csv = Annotated[Path | None, typer.Option(metavar="FILE", help="CSV file with one row per score.")]
Latex = Annotated[Path | None, typer.Option(metavar="FILE", help="LaTeX file with tables for papers (booktabs).")]


def evaluate(
    runs: Runs = None,
    split: Split = None,
    source: Source = None,
    reference: Reference = None,
    concatenate: Concatenate = None,
    metric: Metrics = None,
    by_length: ByLength = None,
    length_of: LengthOf = LengthSide.SOURCE,
    length_in: LengthIn = LengthUnit.TOKENS,
    merge_below: MergeBelow = 0,
    beam_size: BeamSize = None,
    length_penalty: LengthPenalty = None,
    max_length_ratio: MaxLengthRatio = None,
    batch_size: BatchSize = None,
    reuse_hypotheses: ReuseHypotheses = False,
    ensemble: Ensemble = False,
    no_attention: NoAttention = False,
    full: Full = False,
    json: Json = None,
    report: Report = None,
    plots: PlotFormat = None,
    csv: Csv = None,
    latex: Latex = None,
    device: Device = None,
    precision: TranslationPrecision = None,
    imports: Import = None,
    debug: Debug = False,
) -> None:
    """Translate test sets and score runs, side by side.

    Prints BLEU, or the first --metric that is scored by length; the report also analyzes attention. Runs that differ
    only in their seed form one arm; arms are compared with the first. If an output file is named, no run is changed.
    """
    from seq2seq_attn.commands.evaluate import EvaluationRequest

    search = _search(beam_size, length_penalty, max_length_ratio, batch_size)
    request = EvaluationRequest(
        runs or only_newest_run(),
        splits=split or [],
        source=source,
        reference=reference,
        concatenate=concatenate or [],
        settings=_settings(metric or [], by_length, length_of, length_in, merge_below),
        decoding=_decoding(search, device, precision, reuse_hypotheses),
        files=_files(json, report, plots, csv, latex),
        ensemble=ensemble,
        analyze_attention=not no_attention,
    )
    _evaluate_and_print(request, is_full=full)


def _search(
    beam_size: int | None, length_penalty: float | None, max_length_ratio: float | None, batch_size: int | None
) -> SearchOptions:
    from seq2seq_attn.search.options import SearchOptions

    return SearchOptions.given(
        beam_size=beam_size, length_penalty=length_penalty, max_length_ratio=max_length_ratio, batch_size=batch_size
    )


def _settings(
    metrics: Sequence[Metric], by_length: str | None, length_of: LengthSide, length_in: LengthUnit, merge_below: int
) -> Settings:
    from seq2seq_attn.evaluation.scoring import Settings
    from seq2seq_attn.metrics.bleu import DEFAULT_MEASURES, MeasureName

    chosen: list[MeasureName] = [metric.value for metric in dict.fromkeys(metrics)]
    measures = tuple(chosen) or DEFAULT_MEASURES
    return Settings(by_length, length_of.value, measures, merge_below=merge_below, length_in=length_in.value)


def _decoding(search: SearchOptions, device: str | None, precision: str | None, reuse_hypotheses: bool) -> Decoding:
    from seq2seq_attn.evaluation.systems import Decoding

    return Decoding(search, device or "auto", precision or "auto", reuse_hypotheses, is_terminal())


def _files(
    json: Path | None, report: Path | None, plots: Plots | None, csv: Path | None, latex: Path | None
) -> ReportFiles:
    from seq2seq_attn.report.files import ReportFiles

    return ReportFiles(json, report, plots.value if plots else None, csv, latex)


def _evaluate_and_print(request: EvaluationRequest, *, is_full: bool) -> None:
    from seq2seq_attn.commands.evaluate import evaluate as run_evaluation

    report = run_evaluation(request)
    if is_full:
        echo(report.text)
    else:
        echo(report.summary)
        typer.echo("use --full for every measure, every test set and the attention statistics", err=True)
