"""`seq2seq translate`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from seq2seq_attn.cli import options
from seq2seq_attn.config import SearchConfig

Texts = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="TEXT",
        help="Sentences; for a source of vectors, paths of .npy files or FILE.npz:KEY.",
        show_default=False,
    ),
]
Runs = Annotated[
    list[Path] | None,
    typer.Option(
        metavar="RUN",
        help="Run directory; repeat the option for an ensemble of several runs.",
        show_default="the run that finished last",
        callback=options.check_runs,
    ),
]
Input = Annotated[
    list[str] | None,
    typer.Option(
        "-i",
        "--input",
        metavar="FILE|-",
        help="Lines to translate. For several sources, a file for each, or one with tab-separated columns.",
        show_default="-",
    ),
]
Output = Annotated[str, typer.Option("-o", "--output", metavar="FILE|-", help="Translations.")]
Format = Annotated[
    options.Format,
    typer.Option(metavar="text|json", help="json: an object per line, with --attention also the weights."),
]


@options.command(*(name for name in SearchConfig.model_fields if name not in ("max_length_extra", "scorers")))
def translate(
    texts: Texts = None,
    run: Runs = None,
    input: Input = None,
    output: Output = "-",
    format: Format = "text",
    alignment: options.Alignment = None,
    attention: options.Attention = None,
    device: options.Device = "auto",
    precision: options.TranslationPrecision = "auto",
    **search: object,
) -> None:
    """Translate texts, a file or standard input, line by line.

    Output line i translates input line i. A run with several sources takes a TEXT or -i FILE for each, or tabs.
    """
    from seq2seq_attn.cli.translation import translate_lines

    translate_lines(
        texts or [],
        run or [],
        inputs=input or [],
        output=output,
        format=format,
        alignment=alignment,
        attention=attention,
        device=device,
        precision=precision,
        show_progress=options.is_terminal(),
        **search,
    )
