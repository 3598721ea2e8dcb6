"""`seq2seq score`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from seq2seq_attn.commands.cli.options import Alignment, Attention, BatchSize, Debug, Device, Format, Import, check_runs

Pairs = Annotated[
    str | None, typer.Argument(metavar="PAIRS", help="A .tsv, a .jsonl, or a prefix (two files).", show_default=False)
]
Source = Annotated[Path | None, typer.Option(metavar="FILE", help="Source sentences, one per line, instead of PAIRS.")]
Target = Annotated[Path | None, typer.Option(metavar="FILE", help="The translation of each line of --source.")]
Run = Annotated[
    list[Path] | None,
    typer.Option(metavar="RUN", help="Run directory.", show_default="the run that finished last", callback=check_runs),
]
Links = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE", help="Gold word links, one line per pair (0-0 1-2), to report AER, precision and recall."
    ),
]
ScoreFormat = Annotated[
    Format, typer.Option(metavar="text|json", help="json: one object per line, with tokens, links and unknown tokens.")
]


def score(
    pairs: Pairs = None,
    source: Source = None,
    target: Target = None,
    run: Run = None,
    links: Links = None,
    alignment: Alignment = None,
    attention: Attention = None,
    format: ScoreFormat = Format.TEXT,
    batch_size: BatchSize = None,
    device: Device = None,
    imports: Import = None,
    debug: Debug = False,
) -> None:
    """Score given translations by their log-probability.

    The model reads each translation (forced decoding). Prints a line per pair: its log-probability in nats, a tab,
    and its number of target tokens, <eos> included. The perplexity of all pairs goes to stderr.
    """
    from seq2seq_attn.commands.score import ScoringRequest
    from seq2seq_attn.commands.score import score as run_scoring
    from seq2seq_attn.errors import UsageError

    if run and len(run) > 1:
        raise UsageError(
            f"--run given {len(run)} times: score takes one run, not an ensemble; score each run by itself"
        )
    request = ScoringRequest(
        pairs,
        source=source,
        target=target,
        run=run[0] if run else None,
        links=links,
        alignment=alignment,
        attention=attention,
        format=format.value,
        batch_size=batch_size,
        device=device or "auto",
    )
    run_scoring(request)
