"""`seq2seq export`."""

from pathlib import Path
from typing import Annotated, Literal, Required, TypedDict, Unpack

import typer

from seq2seq_attn.cli import options as shared
from seq2seq_attn.errors import UsageError


class ExportOptions(TypedDict, total=False):
    runs: Annotated[
        list[Path],
        typer.Argument(
            metavar="RUN [RUN]",
            help="Run directories.",
            show_default="the run that finished last",
            callback=shared.check_runs,
        ),
    ]
    output: Required[Annotated[Path, shared.option("PAGE.html|DIR.onnx", "What to write.", "--output", "-o")]]
    weights: Annotated[
        Literal["int16", "fp32", "int8"],
        shared.option("FORMAT", "How a page stores the parameters: int8 halves its size.", default="int16"),
    ]


@shared.command()
def export(**options: Unpack[ExportOptions]) -> None:
    """Write runs for use without this package.

    PAGE.html is a page that translates as you type, with one run or two side by side; it needs no network. DIR.onnx
    is a folder with a run's graphs for ONNX Runtime; it needs pip install 'seq2seq-attn[onnx]'.
    """
    from seq2seq_attn.run_dir import RunDir, newest_run

    output = options["output"]
    runs = [RunDir(run) for run in options["runs"]] if "runs" in options else [newest_run()]
    if output.suffix == ".html" and len(runs) <= 2:
        from seq2seq_attn.export.page import export_page

        export_page(runs, output, options.get("weights", "int16"))
    elif output.suffix == ".onnx" and len(runs) == 1:
        from seq2seq_attn.export.onnx import export_onnx

        export_onnx(runs[0], output)
    else:
        raise UsageError(f"--output {output}: expected PAGE.html for one or two runs, or DIR.onnx for one")
    shared.echo(str(output))
