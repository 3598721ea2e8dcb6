"""`seq2seq export`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from seq2seq_attn.cli import options
from seq2seq_attn.errors import UsageError

Run = Annotated[
    Path | None,
    typer.Argument(metavar="RUN", help="Run directory.", show_default="the run that finished last"),
]
Output = Annotated[Path, typer.Option("--output", "-o", metavar="DIR.onnx", help="Folder to write.")]


@options.command()
def export(output: Output, run: Run = None) -> None:
    """Write a run for other programs, as ONNX.

    The folder gets two graphs, prepare.onnx and step.onnx, and model.json with vocabularies and search options. Needs
    the extra `onnx`: pip install 'seq2seq-attn[onnx]'.
    """
    from seq2seq_attn.export.onnx import export_onnx
    from seq2seq_attn.run_dir import RunDir, newest_run

    if output.suffix != ".onnx":
        raise UsageError(f"--output {output}: expected a folder named DIR.onnx")
    export_onnx(newest_run() if run is None else RunDir(run), output)
    options.echo(str(output))
