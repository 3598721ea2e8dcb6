"""`seq2seq export`."""

from pathlib import Path
from typing import Annotated, Literal

from seq2seq_attn.cli import options as shared


@shared.command()
def export(
    output: Annotated[
        Path, shared.option("PAGE.html|DIR.onnx", "What to write.", "--output", "-o")
    ],
    runs: Annotated[list[Path] | None, shared.runs_argument("RUN [RUN]")] = None,
    weights: Annotated[
        Literal["int16", "fp32", "int8"],
        shared.option("FORMAT", "How a page stores the parameters: int8 halves its size."),
    ] = "int16",
) -> None:
    """Write runs for use without this package.

    PAGE.html is a page that translates as you type, with one run or two side by side; it needs no
    network. DIR.onnx is a folder with a run's graphs for ONNX Runtime; it needs pip install
    'seq2seq-attn[onnx]'.
    """
    from seq2seq_attn.api.export import export

    export(runs, output, weights)
    shared.echo(str(output))
