"""Options of the search that `translate` alone has."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from seq2seq_attn.limits import MAX_LENGTH_PENALTY


class Method(StrEnum):
    """The values of `--method`."""

    BEAM = "beam"
    SAMPLE = "sample"
    MBR = "mbr"


CoveragePenalty = Annotated[
    float | None,
    typer.Option(
        min=0.0,
        max=MAX_LENGTH_PENALTY,
        metavar="B",
        help="Weight of the penalty for source tokens whose total attention is below 1.",
        show_default="the run's",
    ),
]
NoRepeatNgram = Annotated[
    int | None,
    typer.Option(min=0, metavar="N", help="Never repeat an N-gram of tokens; 0: off.", show_default="the run's"),
]
Prefix = Annotated[
    str | None,
    typer.Option(
        metavar="TEXT",
        help="Text that every translation starts with; subwords may continue its last word.",
    ),
]
SearchMethod = Annotated[
    Method,
    typer.Option(
        metavar="|".join(Method),
        help="beam: beam search; sample: --n-best random samples; mbr: of --num-samples samples, the one most similar "
        "to the others (minimum Bayes risk).",
    ),
]
NumSamples = Annotated[
    int | None, typer.Option(min=1, metavar="N", help="Samples per sentence for mbr.", show_default="32")
]
Temperature = Annotated[
    float | None,
    typer.Option(metavar="T", help="Temperature of samples; below 1 sharpens the distribution.", show_default="1"),
]
TopK = Annotated[
    int | None,
    typer.Option(min=0, metavar="K", help="Sample from the K most probable tokens only; 0: all.", show_default="all"),
]
TopP = Annotated[
    float | None,
    typer.Option(max=1.0, metavar="P", help="Sample from the top tokens with total probability P.", show_default="1"),
]
SampleSeed = Annotated[
    int | None,
    typer.Option(
        "--seed", min=0, metavar="N", help="Seed of the samples.", show_default="1", rich_help_panel="Samples"
    ),
]
