"""`seq2seq prepare`."""

from pathlib import Path
from typing import Annotated, Unpack

import typer

from seq2seq_attn.cli import options as shared


class PrepareOptions(shared.ConfigOptions, total=False):
    corpus: Annotated[
        str,
        typer.Argument(metavar="multi30k|captions", help="A corpus by name.", show_default=False),
    ]
    links: shared.Links
    data_dir: Annotated[
        Path,
        shared.option(
            "DIR", "Folder for data; to train from it, set data.data_dir.", default="data"
        ),
    ]
    source_dir: Annotated[
        Path, shared.option("DIR", "Folder with the corpus's files, instead of downloading them.")
    ]


@shared.command()
def prepare(**options: Unpack[PrepareOptions]) -> None:
    """Read, check and tokenize a corpus; print an audit.

    The default corpus is multi30k. A corpus that was prepared the same way before is reused.
    """
    from seq2seq_attn.api.prepare import prepare
    from seq2seq_attn.data.audit import audit_report

    arguments = shared.python_arguments(options)
    shared.echo(audit_report(prepare(**arguments)))
