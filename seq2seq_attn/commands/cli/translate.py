"""`seq2seq translate`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from seq2seq_attn.commands.cli.options import (
    Alignment,
    Attention,
    BatchSize,
    BeamSize,
    Debug,
    Device,
    Format,
    Import,
    LengthPenalty,
    MaxLengthRatio,
    TranslationPrecision,
    UnkMode,
    check_runs,
    is_terminal,
)

Texts = Annotated[list[str] | None, typer.Argument(metavar="TEXT", help="Sentences.", show_default=False)]
Runs = Annotated[
    list[Path] | None,
    typer.Option(
        metavar="RUN",
        help="Run directory; repeat the option for an ensemble of several runs.",
        show_default="the run that finished last",
        callback=check_runs,
    ),
]
Input = Annotated[
    str | None, typer.Option("-i", "--input", metavar="FILE|-", help="Lines to translate.", show_default="-")
]
Output = Annotated[str | None, typer.Option("-o", "--output", metavar="FILE|-", help="Translations.", show_default="-")]
TranslationFormat = Annotated[
    Format, typer.Option(metavar="text|json", help="json: one object per line, with score, tokens, links.")
]
NBest = Annotated[int, typer.Option(min=1, metavar="N", help="Translations per sentence.")]
UnkHandling = Annotated[
    UnkMode,
    typer.Option(
        metavar="keep|copy|forbid", help="Unknown words: keep <unk>, copy the source word, or never write it."
    ),
]


def translate(
    texts: Texts = None,
    run: Runs = None,
    input: Input = None,
    output: Output = None,
    format: TranslationFormat = Format.TEXT,
    beam_size: BeamSize = None,
    n_best: NBest = 1,
    length_penalty: LengthPenalty = None,
    max_length_ratio: MaxLengthRatio = None,
    unk: UnkHandling = UnkMode.KEEP,
    alignment: Alignment = None,
    attention: Attention = None,
    batch_size: BatchSize = None,
    device: Device = None,
    precision: TranslationPrecision = None,
    imports: Import = None,
    debug: Debug = False,
) -> None:
    """Translate texts, a file or standard input: output line i translates input line i.

    A blank line gives a blank line. Memory does not grow with the file.
    """
    from seq2seq_attn.commands.translate import TranslationRequest
    from seq2seq_attn.commands.translate import translate as run_translation
    from seq2seq_attn.search.options import SearchOptions

    search = SearchOptions.given(
        beam_size=beam_size,
        n_best=n_best,
        length_penalty=length_penalty,
        max_length_ratio=max_length_ratio,
        batch_size=batch_size,
        unk=unk.value,
    )
    request = TranslationRequest(
        texts or [],
        run or [],
        input=input,
        output=output,
        format=format.value,
        search=search,
        alignment=alignment,
        attention=attention,
        device=device or "auto",
        precision=precision or "auto",
        show_progress=is_terminal(),
    )
    run_translation(request)
