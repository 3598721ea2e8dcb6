"""Write runs for use without this package, for `seq2seq export`."""

from pathlib import Path
from typing import Literal

from seq2seq_attn.errors import UsageError
from seq2seq_attn.run import Runs, open_runs


def export(
    runs: Runs,
    output: Path,
    weights: Literal["int16", "fp32", "int8"] = "int16",
) -> None:
    """Write an HTML page that translates as you type, or a folder with graphs for ONNX Runtime.

    Args:
        runs: one or two runs for a page, or one run for ONNX Runtime.
        output: `PAGE.html` for a page, or `DIR.onnx` for ONNX Runtime.
        weights: the number format in which a page stores the parameters.

    Raises:
        UsageError: the output has another suffix, or the number of runs does not fit the output.
        UserError: a run cannot be read or exported.
    """
    opened = open_runs(runs)
    if output.suffix == ".html" and len(opened) <= 2:
        from seq2seq_attn.export.page import export_page

        export_page(opened, output, weights)
    elif output.suffix == ".onnx" and len(opened) == 1:
        from seq2seq_attn.export.onnx import export_onnx

        export_onnx(opened[0], output)
    else:
        raise UsageError(
            f"--output {output}: expected PAGE.html for one or two runs, or DIR.onnx for one"
        )
