"""`seq2seq export`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from seq2seq_attn.cli import options
from seq2seq_attn.errors import UsageError

Runs = Annotated[
    list[Path] | None,
    typer.Argument(metavar="RUN [RUN]", help="Run directories.", show_default="the run that finished last"),
]
Output = Annotated[Path, typer.Option("--output", "-o", metavar="PAGE.html|DIR.onnx", help="What to write.")]


@options.command()
def export(output: Output, runs: Runs = None) -> None:
    """Write runs for use without this package.

    PAGE.html is a page that translates as you type, with one run or two side by side; it needs no network. DIR.onnx
    is a folder with a run's graphs for ONNX Runtime; it needs pip install 'seq2seq-attn[onnx]'.
    """
    from seq2seq_attn.run_dir import RunDir, newest_run

    opened = [RunDir(run) for run in runs] if runs else [newest_run()]
    if output.suffix == ".html" and len(opened) <= 2:
        from seq2seq_attn.export.page import export_page

        export_page(opened, output)
    elif output.suffix == ".onnx" and len(opened) == 1:
        from seq2seq_attn.export.onnx import export_onnx

        export_onnx(opened[0], output)
    else:
        raise UsageError(f"--output {output}: expected PAGE.html for one or two runs, or DIR.onnx for one")
    options.echo(str(output))
