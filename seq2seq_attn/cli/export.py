"""`seq2seq export` and `seq2seq push`."""

from pathlib import Path
from typing import Annotated, Literal

import typer

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
    from seq2seq_attn.api import export as api

    api.export(runs, output, weights)
    shared.echo(str(output))


@shared.command()
def push(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="A finished run directory.")],
    repository: Annotated[str, typer.Argument(metavar="OWNER/NAME", help="Where it goes.")],
    license: Annotated[
        str | None,
        shared.option(
            "ID",
            "License of the model, as the hub names it (cc-by-4.0).",
            default="the license of the corpus",
        ),
    ] = None,
    private: Annotated[bool, shared.flag("--private", "Make a new repository private.")] = False,
) -> None:
    """Publish a run on the Hugging Face hub, with a card.

    The card is written from the run's records: evaluate the run first. The vocabularies and the
    command that trained the run are published too. Then seq2seq translate --run hf:OWNER/NAME loads
    the run. Log in with hf auth login, or set HF_TOKEN; needs pip install 'seq2seq-attn[hub]'.
    """
    from seq2seq_attn.export.hub import push_run
    from seq2seq_attn.run import Run

    shared.echo(push_run(Run.open(run.resolve()), repository, license=license, is_private=private))
