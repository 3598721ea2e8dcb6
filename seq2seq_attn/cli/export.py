"""`seq2seq export`."""

from pathlib import Path
from typing import Annotated, Literal

from seq2seq_attn.cli import options as shared
from seq2seq_attn.errors import UsageError


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
    from seq2seq_attn.run import Run, newest_run

    run_dirs = [Run.open(run) for run in runs] if runs else [newest_run()]
    if output.suffix == ".html" and len(run_dirs) <= 2:
        from seq2seq_attn.export.page import export_page

        export_page(run_dirs, output, weights)
    elif output.suffix == ".onnx" and len(run_dirs) == 1:
        from seq2seq_attn.export.onnx import export_onnx

        export_onnx(run_dirs[0], output)
    else:
        raise UsageError(
            f"--output {output}: expected PAGE.html for one or two runs, or DIR.onnx for one"
        )
    shared.echo(str(output))
