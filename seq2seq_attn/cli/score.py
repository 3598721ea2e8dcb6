"""`seq2seq score`."""

from pathlib import Path
from typing import Annotated, TypedDict, Unpack

import typer

from seq2seq_attn.cli import options as shared
from seq2seq_attn.runtime.memory import paused_collector


class ScoreOptions(TypedDict, total=False):
    pairs: Annotated[
        str,
        typer.Argument(
            metavar="PAIRS",
            help="A table (TSV, CSV, JSON, TMX, XLIFF, PO), or a prefix (two files).",
            show_default=False,
        ),
    ]
    columns: Annotated[
        str,
        shared.option(
            "SOURCE,TARGET",
            "The columns of the table, by number (1,2) or by name.",
            default="those of the run, or else as named by the first line",
        ),
    ]
    source: Annotated[
        Path, shared.option("FILE", "Source sentences, one per line, instead of PAIRS.")
    ]
    target: Annotated[Path, shared.option("FILE", "The translation of each line of --source.")]
    run: Annotated[
        list[Path],
        shared.option(
            "RUN",
            "Run directory.",
            "--run",
            "--run-dir",
            default="the run that finished last",
            callback=shared.open_runs,
        ),
    ]
    links: Annotated[
        Path,
        shared.option(
            "FILE",
            "Gold word links, one line per pair (0-0 1-2), to report AER, precision and recall.",
        ),
    ]
    alignment: shared.Alignment
    attention: shared.Attention
    format: Annotated[
        shared.Format,
        shared.option(
            "text|json",
            "json: one object per line, with tokens, links and unknown tokens.",
            default="text",
        ),
    ]
    device: shared.Device


@shared.command(search=["batch_size"])
def score(**options: Unpack[ScoreOptions]) -> None:
    """Score given translations by their log-probability.

    The model reads each translation (forced decoding). Prints a line per pair: its log-probability
    in nats, a tab, and its number of target tokens, <eos> included. The perplexity of all pairs
    goes to stderr.
    """
    with paused_collector():
        from seq2seq_attn.api.score import score_pairs

    score_pairs(**options)
