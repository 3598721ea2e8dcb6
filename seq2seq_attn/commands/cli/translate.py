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
from seq2seq_attn.commands.cli.search import (
    CoveragePenalty,
    Method,
    NoRepeatNgram,
    NumSamples,
    Prefix,
    SampleSeed,
    SearchMethod,
    Temperature,
    TopK,
    TopP,
)

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
        callback=check_runs,
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
Output = Annotated[str | None, typer.Option("-o", "--output", metavar="FILE|-", help="Translations.", show_default="-")]
TranslationFormat = Annotated[
    Format, typer.Option(metavar="text|json", help="json: one object per line, with score, tokens, links.")
]
NBest = Annotated[
    int,
    typer.Option(
        min=1,
        metavar="N",
        help="Translations per sentence; above 1, each is a line: line number ||| text ||| log P ||| score.",
    ),
]
UnkHandling = Annotated[
    UnkMode,
    typer.Option(
        metavar="keep|copy|forbid", help="Unknown words: keep <unk>, copy the source word, or never write it."
    ),
]


_SEARCH = (
    *("beam_size", "n_best", "length_penalty", "coverage_penalty", "no_repeat_ngram", "max_length_ratio", "batch_size"),
    *("unk", "prefix", "method", "num_samples", "temperature", "top_k", "top_p", "seed"),
)
"""parameters of `translate` that are `SearchOptions`"""


def translate(
    context: typer.Context,
    texts: Texts = None,
    run: Runs = None,
    input: Input = None,
    output: Output = None,
    format: TranslationFormat = Format.TEXT,
    beam_size: BeamSize = None,
    n_best: NBest = 1,
    length_penalty: LengthPenalty = None,
    coverage_penalty: CoveragePenalty = None,
    no_repeat_ngram: NoRepeatNgram = None,
    max_length_ratio: MaxLengthRatio = None,
    unk: UnkHandling = UnkMode.KEEP,
    prefix: Prefix = None,
    method: SearchMethod = Method.BEAM,
    num_samples: NumSamples = None,
    temperature: Temperature = None,
    top_k: TopK = None,
    top_p: TopP = None,
    seed: SampleSeed = None,
    alignment: Alignment = None,
    attention: Attention = None,
    batch_size: BatchSize = None,
    device: Device = None,
    precision: TranslationPrecision = None,
    imports: Import = None,
    debug: Debug = False,
) -> None:
    """Translate texts, a file or standard input, line by line.

    Output line i translates input line i. A run with several sources takes a TEXT or -i FILE for each, or tabs.
    """
    from seq2seq_attn.commands import translate as command
    from seq2seq_attn.search.options import SearchOptions

    request = command.TranslationRequest(
        texts or [],
        run or [],
        inputs=input or [],
        output=output,
        format=format.value,
        search=SearchOptions.given(**{name: context.params[name] for name in _SEARCH}),
        alignment=alignment,
        attention=attention,
        device=device or "auto",
        precision=precision or "auto",
        show_progress=is_terminal(),
    )
    command.translate(request)
