"""`seq2seq evaluate`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from seq2seq_attn.cli import options
from seq2seq_attn.metrics.table import DEFAULT_METRICS, METRICS, LengthIn, LengthOf
from seq2seq_attn.translate.figure import PlotFormat

Runs = Annotated[
    list[Path] | None,
    typer.Argument(
        metavar="RUN", help="Run directories.", show_default="the run that finished last", callback=options.check_runs
    ),
]
Split = Annotated[
    list[str] | None,
    typer.Option(metavar="NAME", help="Split of the runs' corpus; may be repeated.", show_default="its test sets"),
]
Source = Annotated[
    Path | None, typer.Option(metavar="FILE", help="Instead of a split: sentences to translate, one per line.")
]
Reference = Annotated[
    list[Path] | None,
    typer.Option(metavar="FILE", help="Reference translations of --source; may be repeated, all count."),
]
Concatenate = Annotated[
    list[int] | None,
    typer.Option(
        min=1,
        metavar="K",
        help="Concatenate K sentence pairs into one; may be repeated, for one test set per K.",
        show_default="no",
    ),
]


def _metric(name: str) -> str:
    """Raises ValueError if there is no such metric."""
    if name not in METRICS:
        raise ValueError(f"{name!r} is not one of {', '.join(map(repr, METRICS))}")
    return name


Metrics = Annotated[
    list[str] | None,
    typer.Option(
        "--metric",
        parser=_metric,
        metavar="NAME",
        help=f"{', '.join(METRICS)}; may be repeated.",
        show_default=f"the runs' validation metric, {', '.join(DEFAULT_METRICS)}",
    ),
]
ByLength = Annotated[
    str | None,
    typer.Option(
        metavar="EDGES",
        help="Lower edges of the length buckets, for example 9,12,15, or quantiles:N.",
        show_default="chosen for the corpus",
    ),
]
LengthSide = Annotated[
    LengthOf, typer.Option("--length-of", metavar="source|reference", help="The side whose length is counted.")
]
LengthUnit = Annotated[LengthIn, typer.Option("--length-in", metavar="tokens|characters", help="The unit of length.")]
MergeBelow = Annotated[
    int, typer.Option(min=0, metavar="N", help="Join buckets under N pairs to their smaller neighbor.")
]
ReuseHypotheses = Annotated[
    bool, typer.Option("--reuse-hypotheses", help="Reuse saved translations of the same model and settings.")
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
        metavar="FILE", help="JSON file for all scores; translations go beside it.", show_default="in the first run"
    ),
]
Page = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="Report, .md or .html; .html also shows sentences and attention.",
        show_default="in the first run",
    ),
]
Plots = Annotated[
    PlotFormat | None,
    typer.Option(
        metavar="NAME",
        help="Plots as png, svg or pdf, beside the report.",
        show_default="png in the first run; none elsewhere",
    ),
]
Csv = Annotated[Path | None, typer.Option(metavar="FILE", help="CSV file with one row per score.")]
Latex = Annotated[Path | None, typer.Option(metavar="FILE", help="LaTeX file with tables for papers (booktabs).")]


@options.command("method", "beam_size", "length_penalty", "max_length_ratio", "batch_size")
def evaluate(
    runs: Runs = None,
    split: Split = None,
    source: Source = None,
    reference: Reference = None,
    concatenate: Concatenate = None,
    metric: Metrics = None,
    by_length: ByLength = None,
    length_of: LengthSide = "source",
    length_in: LengthUnit = "tokens",
    merge_below: MergeBelow = 0,
    reuse_hypotheses: ReuseHypotheses = False,
    ensemble: Ensemble = False,
    no_attention: NoAttention = False,
    full: Full = False,
    json: Json = None,
    report: Page = None,
    plots: Plots = None,
    csv: Csv = None,
    latex: Latex = None,
    device: options.Device = "auto",
    precision: options.TranslationPrecision = "auto",
    **search: object,
) -> None:
    """Translate test sets and score runs, side by side.

    Prints BLEU, or the first --metric that is scored by length; the report also analyzes attention. Runs that differ
    only in their seed form one arm; arms are compared with the first. If an output file is named, no run is changed.
    """
    from seq2seq_attn.cli.evaluation import evaluate_runs
    from seq2seq_attn.evaluation.scoring import Settings
    from seq2seq_attn.evaluation.systems import Decoding
    from seq2seq_attn.report.files import ReportFiles

    metrics = tuple(dict.fromkeys(metric or ()))
    scores = evaluate_runs(
        runs,
        splits=split or [],
        source=source,
        references=reference or [],
        concatenate=concatenate or [],
        settings=Settings(by_length, length_of, metrics, merge_below=merge_below, length_in=length_in),
        decoding=Decoding(search, device, precision, reuse_hypotheses, options.is_terminal()),
        files=ReportFiles(json, report, plots, csv, latex),
        ensemble=ensemble,
        no_attention=no_attention,
    )
    options.echo(scores.text if full else scores.summary)
    if not full:
        typer.echo("use --full for every measure, every test set and the attention statistics", err=True)
