"""`seq2seq translate`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from seq2seq_attn.commands.cli.options import (
    BatchSize,
    BeamSize,
    Debug,
    Device,
    Format,
    Import,
    LengthPenalty,
    MaxLengthRatio,
    TranslationPrecision,
    Unk,
    is_terminal,
)


def translate(
    texts: Annotated[list[str] | None, typer.Argument(metavar="TEXT", help="Sentences.", show_default=False)] = None,
    run: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="RUN",
            help="Run directory; several (the option repeated) translate as one model, an ensemble.",
            show_default="the run that finished last",
        ),
    ] = None,
    input: Annotated[
        str | None, typer.Option("-i", "--input", metavar="FILE|-", help="Lines to translate.", show_default="-")
    ] = None,
    output: Annotated[
        str | None, typer.Option("-o", "--output", metavar="FILE|-", help="Translations.", show_default="-")
    ] = None,
    format: Annotated[
        Format, typer.Option(metavar="text|json", help="json: an object per line, with score, tokens, links.")
    ] = Format.TEXT,
    beam_size: BeamSize = None,
    n_best: Annotated[int, typer.Option(min=1, metavar="N", help="Translations per sentence.")] = 1,
    length_penalty: LengthPenalty = None,
    max_length_ratio: MaxLengthRatio = None,
    unk: Annotated[
        Unk,
        typer.Option(
            metavar="keep|copy|forbid", help="Unknown words: keep <unk>, copy by attention, or never choose one."
        ),
    ] = Unk.KEEP,
    alignment: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write word links, one line per translation: 0-0 1-2 (source-target)."),
    ] = None,
    attention: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE.png|.svg|.pdf|.html|.npz", help="Write the attention as pictures, a page, or arrays."
        ),
    ] = None,
    batch_size: BatchSize = None,
    device: Device = None,
    precision: TranslationPrecision = None,
    imports: Import = None,
    debug: Debug = False,
) -> None:
    """Translate texts, a file or standard input: line i out is line i in.

    A blank line gives a blank line; memory does not grow with the file.
    """
    from seq2seq_attn.commands.translate import TranslationRequest
    from seq2seq_attn.commands.translate import translate as run_translation
    from seq2seq_attn.model.variants import import_variants
    from seq2seq_attn.search.options import SearchOptions

    import_variants(imports or [])
    request = TranslationRequest(
        texts or [],
        run or [],
        input=input,
        output=output,
        format=format.value,
        search=SearchOptions.given(
            beam_size=beam_size,
            n_best=n_best,
            length_penalty=length_penalty,
            max_length_ratio=max_length_ratio,
            batch_size=batch_size,
            unk=unk.value,
        ),
        alignment=alignment,
        attention=attention,
        device=device or "auto",
        precision=precision or "auto",
        show_progress=is_terminal(),
    )
    run_translation(request)
