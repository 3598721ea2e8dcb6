"""`seq2seq score`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from seq2seq_attn.commands.cli.options import BatchSize, Debug, Device, Format, Import


def score(
    pairs: Annotated[
        str | None,
        typer.Argument(metavar="TEXT", help="A prefix (two files), a .tsv or a .jsonl.", show_default=False),
    ] = None,
    source: Annotated[Path | None, typer.Option(metavar="FILE", help="Or: source sentences, one per line,")] = None,
    target: Annotated[Path | None, typer.Option(metavar="FILE", help="and the translation of each.")] = None,
    run: Annotated[
        list[Path] | None,
        typer.Option(metavar="RUN", help="Run directory, just one.", show_default="the run that finished last"),
    ] = None,
    links: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Gold word links, one line per pair: 0-0 1-2; report AER, precision, recall."
        ),
    ] = None,
    alignment: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the attention's word links in the same form.")
    ] = None,
    attention: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE.png|.svg|.pdf|.html|.npz", help="Write the attention as pictures, a page, or arrays."
        ),
    ] = None,
    format: Annotated[
        Format, typer.Option(metavar="text|json", help="json: an object per line, with tokens and links.")
    ] = Format.TEXT,
    batch_size: BatchSize = None,
    device: Device = None,
    imports: Import = None,
    debug: Debug = False,
) -> None:
    """Score given translations: how probable does the model find them?

    Forced decoding. Line i is the log-probability (natural logarithm) of pair i, a tab, and its number of target tokens
    with <eos>. The perplexity of all pairs goes to stderr.
    """
    from seq2seq_attn.commands.score import score as run_scoring
    from seq2seq_attn.errors import UsageError
    from seq2seq_attn.model.variants import import_variants

    if run and len(run) > 1:
        raise UsageError(
            f"--run given {len(run)} times: score takes one run, not an ensemble; score each run by itself"
        )
    import_variants(imports or [])
    run_scoring(
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
