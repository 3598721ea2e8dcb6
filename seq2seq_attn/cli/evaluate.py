"""`seq2seq evaluate`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, TypedDict, Unpack, get_args

import typer

from seq2seq_attn.cli import options as shared
from seq2seq_attn.metrics.names import DEFAULT_MEASURES, LengthIn, LengthOf, MeasureName
from seq2seq_attn.translate.figure import PlotFormat


def _measure(name: str) -> str:
    """Raises ValueError if there is no such metric; Typer reads no lists of literals."""
    if name not in get_args(MeasureName):
        raise ValueError(f"{name!r} is not one of {', '.join(map(repr, get_args(MeasureName)))}")
    return name


class EvaluateOptions(TypedDict, total=False):
    """The options of the command, and of `seq2seq_attn.evaluate`."""

    runs: Annotated[
        list[Path],
        typer.Argument(
            metavar="RUN",
            help="Run directories.",
            show_default="the run that finished last",
            callback=shared.check_runs,
        ),
    ]
    split: Annotated[
        list[str],
        typer.Option(metavar="NAME", help="Split of the runs' corpus; may be repeated.", show_default="its test sets"),
    ]
    source: Annotated[
        Path, typer.Option(metavar="FILE", help="Instead of a split: sentences to translate, one per line.")
    ]
    reference: Annotated[
        list[Path], typer.Option(metavar="FILE", help="Reference translations of --source; may be repeated, all count.")
    ]
    concatenate: Annotated[
        list[int],
        typer.Option(
            min=1,
            metavar="K",
            help="Concatenate K sentence pairs into one; may be repeated, for one test set per K.",
            show_default="no",
        ),
    ]
    metric: Annotated[
        list[str],
        typer.Option(
            parser=_measure,
            metavar="NAME",
            help=f"{', '.join(get_args(MeasureName))}; may be repeated.",
            show_default=f"the runs' validation metric, {', '.join(DEFAULT_MEASURES)}",
        ),
    ]
    by_length: Annotated[
        str,
        typer.Option(
            metavar="EDGES",
            help="Lower edges of the length buckets, for example 9,12,15, or quantiles:N.",
            show_default="chosen for the corpus",
        ),
    ]
    length_of: Annotated[
        LengthOf,
        typer.Option(metavar="source|reference", help="The side whose length is counted.", show_default="source"),
    ]
    length_in: Annotated[
        LengthIn, typer.Option(metavar="tokens|characters", help="The unit of length.", show_default="tokens")
    ]
    merge_below: Annotated[
        int,
        typer.Option(
            min=0, metavar="N", help="Join buckets under N pairs to their smaller neighbor.", show_default="0"
        ),
    ]
    reuse_hypotheses: Annotated[
        bool, typer.Option("--reuse-hypotheses", help="Reuse saved translations of the same model and settings.")
    ]
    ensemble: Annotated[
        bool, typer.Option("--ensemble", help="Also score all runs as one model: the mean of their probabilities.")
    ]
    no_attention: Annotated[
        bool, typer.Option("--no-attention", help="Leave out entropy, coverage and alignment of the attention.")
    ]
    json: Annotated[
        Path,
        typer.Option(
            metavar="FILE", help="JSON file for all scores; translations go beside it.", show_default="in the first run"
        ),
    ]
    report: Annotated[
        Path,
        typer.Option(
            metavar="FILE",
            help="Report, .md or .html; .html also shows sentences and attention.",
            show_default="in the first run",
        ),
    ]
    plots: Annotated[
        PlotFormat,
        typer.Option(
            metavar="NAME",
            help="Plots as png, svg or pdf, beside the report.",
            show_default="png in the first run; none elsewhere",
        ),
    ]
    csv: Annotated[Path, typer.Option(metavar="FILE", help="CSV file with one row per score.")]
    latex: Annotated[Path, typer.Option(metavar="FILE", help="LaTeX file with tables for papers (booktabs).")]
    device: shared.Device
    precision: shared.TranslationPrecision


class PrintOptions(EvaluateOptions, total=False):
    """With the option that decides what the command prints."""

    full: Annotated[bool, typer.Option("--full", help="Show every measure and test set, and attention statistics.")]


@shared.command("method", "beam_size", "length_penalty", "max_length_ratio", "batch_size")
def evaluate(search: dict[str, Any], **options: Unpack[PrintOptions]) -> None:
    """Translate test sets and score runs, side by side.

    Prints BLEU, or the first --metric that is scored by length; the report also analyzes attention. Runs that differ
    only in their seed form one arm; arms are compared with the first. If an output file is named, no run is changed.
    """
    from seq2seq_attn.cli.evaluation import evaluate

    full = options.pop("full", False)
    report = evaluate(**options, **search, show_progress=shared.is_terminal())
    shared.echo(report.text if full else report.summary)
    if not full:
        typer.echo("use --full for every measure, every test set and the attention statistics", err=True)
