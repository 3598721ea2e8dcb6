"""`seq2seq evaluate`."""

from pathlib import Path
from typing import Annotated, TypedDict, Unpack

import typer

from seq2seq_attn.cli import options as shared
from seq2seq_attn.metrics.table import DEFAULT_METRICS, METRICS, LengthIn, LengthOf
from seq2seq_attn.translate.figure import PlotFormat


class EvaluateOptions(TypedDict, total=False):
    """Options of the command. Except for `full`, `seq2seq_attn.evaluate` takes the same options."""

    runs: Annotated[list[Path], shared.runs_argument()]
    split: Annotated[
        list[str],
        shared.option(
            "NAME", "Split of the runs' corpus; may be repeated.", default="its test sets"
        ),
    ]
    source: Annotated[
        Path, shared.option("FILE", "Instead of a split: sentences to translate, one per line.")
    ]
    reference: Annotated[
        list[Path],
        shared.option("FILE", "Reference translations of --source; may be repeated, all count."),
    ]
    hypotheses: Annotated[
        list[str],
        shared.option(
            "[NAME=]FILE",
            "Translations by another program, one per line, to score beside runs, or alone with "
            "--source and --reference; may be repeated.",
        ),
    ]
    concatenate: Annotated[
        list[int],
        shared.option(
            "K",
            "Concatenate K sentence pairs into one; may be repeated, for one test set per K.",
            default="no",
            min=1,
        ),
    ]
    metric: Annotated[
        list[str],
        shared.option(
            "NAME",
            f"{', '.join(METRICS)}, or MODULE:CLASS of your own (--import); may be repeated.",
            default=f"the runs' validation metric, {', '.join(DEFAULT_METRICS)}",
        ),
    ]
    by_length: Annotated[
        str,
        shared.option(
            "EDGES",
            "Lower edges of the length buckets, for example 9,12,15, or quantiles:N.",
            default="chosen for the corpus",
        ),
    ]
    length_of: Annotated[
        LengthOf,
        shared.option("source|reference", "The side whose length is counted.", default="source"),
    ]
    length_in: Annotated[
        LengthIn, shared.option("tokens|characters", "The unit of length.", default="tokens")
    ]
    glossary: shared.Glossary
    reuse_hypotheses: Annotated[
        bool,
        shared.flag(
            "--reuse-hypotheses", "Reuse saved translations of the same model and settings."
        ),
    ]
    ensemble: Annotated[
        bool,
        shared.flag(
            "--ensemble", "Also score all runs as one model: the mean of their probabilities."
        ),
    ]
    no_attention: Annotated[
        bool,
        shared.flag(
            "--no-attention", "Leave out entropy, coverage and alignment of the attention."
        ),
    ]
    json: Annotated[
        Path,
        shared.option(
            "FILE",
            "JSON file for all scores; translations go beside it.",
            default="in the first run",
        ),
    ]
    report: Annotated[
        Path,
        shared.option(
            "FILE",
            "Report, .md or .html; .html also shows sentences and attention.",
            default="in the first run",
        ),
    ]
    plots: Annotated[
        PlotFormat,
        shared.option(
            "NAME",
            "Plots as png, svg or pdf, beside the report.",
            default="png in the first run; none elsewhere",
        ),
    ]
    csv: Annotated[Path, shared.option("FILE", "CSV file with one row per score.")]
    full: Annotated[
        bool, shared.flag("--full", "Show every measure and test set, and attention statistics.")
    ]
    device: shared.Device
    precision: shared.TranslationPrecision


@shared.command(search=["method", "beam_size", "length_penalty", "max_length_ratio", "batch_size"])
def evaluate(**options: Unpack[EvaluateOptions]) -> None:
    """Translate test sets and score runs, side by side.

    Prints BLEU, or the first --metric that is scored by length; the report also analyzes attention.
    Runs that differ only in their seed form one arm; arms are compared with the first. Report and
    translations are written into the runs, unless --json, --report or --csv names a file.
    """
    from seq2seq_attn.api import evaluate as api

    full = options.pop("full", False)
    report = api.evaluate(**options)
    if full:
        shared.echo(report.text)
    else:
        shared.echo(report.summary)
        typer.echo(
            "use --full for every measure, every test set and the attention statistics", err=True
        )
