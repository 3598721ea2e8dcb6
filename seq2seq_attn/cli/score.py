"""`seq2seq score`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from seq2seq_attn.cli import options
from seq2seq_attn.errors import UsageError

Pairs = Annotated[
    str | None,
    typer.Argument(metavar="PAIRS", help="A table (TSV, CSV, JSON, TMX), or a prefix (two files).", show_default=False),
]
Source = Annotated[Path | None, typer.Option(metavar="FILE", help="Source sentences, one per line, instead of PAIRS.")]
Target = Annotated[Path | None, typer.Option(metavar="FILE", help="The translation of each line of --source.")]
Run = Annotated[
    list[Path] | None,
    typer.Option(
        metavar="RUN",
        help="Run directory.",
        show_default="the run that finished last",
        callback=options.check_runs,
    ),
]
Links = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE", help="Gold word links, one line per pair (0-0 1-2), to report AER, precision and recall."
    ),
]
Format = Annotated[
    options.Format,
    typer.Option(metavar="text|json", help="json: one object per line, with tokens, links and unknown tokens."),
]


@options.command("batch_size")
def score(
    pairs: Pairs = None,
    source: Source = None,
    target: Target = None,
    run: Run = None,
    links: Links = None,
    alignment: options.Alignment = None,
    attention: options.Attention = None,
    format: Format = "text",
    device: options.Device = "auto",
    **search: int,
) -> None:
    """Score given translations by their log-probability.

    The model reads each translation (forced decoding). Prints a line per pair: its log-probability in nats, a tab,
    and its number of target tokens, <eos> included. The perplexity of all pairs goes to stderr.
    """
    from seq2seq_attn.cli.scoring import score_pairs

    if run and len(run) > 1:
        raise UsageError(
            f"--run given {len(run)} times: score takes one run, not an ensemble; score each run by itself"
        )
    score_pairs(
        pairs,
        source=source,
        target=target,
        run=run[0] if run else None,
        links=links,
        alignment=alignment,
        attention=attention,
        format=format,
        device=device,
        **search,
    )
