"""`seq2seq prepare`."""

import sys
from pathlib import Path
from typing import Annotated, Unpack

import typer

from seq2seq_attn.cli import options as shared
from seq2seq_attn.errors import UsageError

CORPUS_CONFIGS = {"multi30k": "multi30k", "captions": "quickstart"}
"""corpora that `prepare` takes by name, each with the packaged configuration for preparing it"""


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
    from seq2seq_attn.cli.own_text import find_settings
    from seq2seq_attn.config import load_config, with_default
    from seq2seq_attn.data.audit import audit_report
    from seq2seq_attn.data.prepare import prepare_corpus
    from seq2seq_attn.data.sources import split_names

    corpus = options.get("corpus")
    if corpus is not None and ("train_text" in options or "config" in options):
        other = "--train" if "train_text" in options else "--config"
        raise UsageError(
            f"{corpus!r} and {other}: name a corpus, or give a text or a configuration, not both"
        )
    if corpus is not None and corpus not in CORPUS_CONFIGS:
        raise UsageError(
            f"corpus {corpus!r}: expected {', '.join(CORPUS_CONFIGS)}; for others use -c CONFIG"
        )
    config_names, overrides = find_settings(options)
    config = load_config(
        with_default(config_names) if corpus is None else [CORPUS_CONFIGS[corpus]], overrides
    )
    split_names(config.data)  # rejects an invalid corpus
    shared.echo(audit_report(prepare_corpus(config, show_progress=sys.stderr.isatty())))
