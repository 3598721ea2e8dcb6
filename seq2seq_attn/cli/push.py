"""`seq2seq push`."""

from pathlib import Path
from typing import Annotated

import typer

from seq2seq_attn.cli import options as shared


@shared.command()
def push(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="A finished run directory.")],
    repository: Annotated[str, typer.Argument(metavar="OWNER/NAME", help="Where it goes.")],
    license: Annotated[
        str | None,
        shared.option(
            "ID", "License of the model, as the hub names it (cc-by-4.0).", default="the corpus's"
        ),
    ] = None,
    private: Annotated[bool, shared.flag("--private", "Make a new repository private.")] = False,
) -> None:
    """Publish a run on the Hugging Face hub, with a card.

    The card is written from the run's records: evaluate it first. What is published also tells the
    words of its vocabularies and the command that trained it. --run hf:OWNER/NAME then loads it.
    Log in with hf auth login, or set HF_TOKEN; needs pip install 'seq2seq-attn[hub]'.
    """
    from seq2seq_attn.export.hub import push_run
    from seq2seq_attn.run import Run

    shared.echo(push_run(Run(run.resolve()), repository, license=license, is_private=private))
