"""`seq2seq prepare`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from seq2seq_attn.cli import options
from seq2seq_attn.cli.options import as_settings, given
from seq2seq_attn.errors import UsageError

CORPUS_CONFIGS = {"multi30k": "multi30k", "captions": "quickstart"}
"""corpora that `prepare` takes by name, each with the packaged configuration for preparing it"""


@options.command()
def prepare(
    corpus: Annotated[
        str | None, typer.Argument(metavar="multi30k|captions", help="A corpus by name.", show_default=False)
    ] = None,
    train_text: options.Train = None,
    valid_text: options.Valid = None,
    test_text: options.Test = None,
    links: options.Links = None,
    source_language: options.SourceLanguage = None,
    target_language: options.TargetLanguage = None,
    config: options.Config = None,
    settings: options.Set = None,
    data_dir: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Folder for data; to train from it, set data.data_dir.", show_default="data"),
    ] = None,
    source_dir: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Folder with the corpus's files, instead of downloading them."),
    ] = None,
) -> None:
    """Read, check and tokenize a corpus; print an audit.

    The default corpus is multi30k. A corpus that was prepared the same way before is reused.
    """
    from seq2seq_attn.cli.own_text import OwnText, with_own_text
    from seq2seq_attn.config import load_config
    from seq2seq_attn.data.audit import audit_report
    from seq2seq_attn.data.prepare import prepare_corpus
    from seq2seq_attn.data.sources import split_names

    named = {"data.data_dir": data_dir, "data.source_dir": source_dir, "data.links": links}
    overrides = [*(settings or []), *as_settings(given(named))]
    if corpus is not None and train_text:
        raise UsageError(f"{corpus!r} and --train: name a corpus or give your own text, not both")
    text = OwnText(train_text, valid_text, test_text, source_language, target_language)
    config_names, overrides = with_own_text(text, config or [], overrides)
    resolved = load_config(_prepare_configs(corpus, config_names), overrides)
    split_names(resolved.data)  # rejects an invalid corpus
    prepared = prepare_corpus(resolved, show_progress=options.is_terminal())
    options.echo(audit_report(prepared))


def _prepare_configs(corpus: str | None, config: list[str]) -> list[str]:
    if corpus is not None and config:
        raise UsageError(f"{corpus!r} and --config: name the corpus or give a configuration, not both")
    if corpus is not None and corpus not in CORPUS_CONFIGS:
        raise UsageError(f"corpus {corpus!r}: expected {', '.join(CORPUS_CONFIGS)}; for others use -c CONFIG")
    from seq2seq_attn.config import with_default

    return with_default(config) if corpus is None else [CORPUS_CONFIGS[corpus]]
