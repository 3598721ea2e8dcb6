"""`seq2seq prepare`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from seq2seq_attn.commands.cli.options import Config, Debug, Import, Set, as_settings, is_terminal
from seq2seq_attn.errors import UsageError

CORPUS_CONFIGS = {"multi30k": "multi30k", "captions": "quickstart"}
"""the corpora `prepare` takes by name, each with the packaged configuration that says how to prepare it"""


def prepare(
    corpus: Annotated[
        str | None, typer.Argument(metavar="multi30k|captions", help="A corpus by name.", show_default=False)
    ] = None,
    config: Config = None,
    settings: Set = None,
    data_dir: Annotated[Path | None, typer.Option(metavar="DIR", help="Where data lies.", show_default="data")] = None,
    source_dir: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="A folder that holds the published .gz files: same checksums, no network."),
    ] = None,
    imports: Import = None,
    debug: Debug = False,
) -> None:
    """Fetch, check and number a corpus; print an audit.

    Without arguments: multi30k. A corpus that was prepared the same way before is reused.
    """
    from seq2seq_attn.config import load_config
    from seq2seq_attn.data.prepare import audit_report, prepare_corpus
    from seq2seq_attn.model.variants import import_variants

    import_variants(imports or [])
    overrides = [*(settings or []), *as_settings({"data.data_dir": data_dir, "data.source_dir": source_dir})]
    prepared = prepare_corpus(load_config(_prepare_sources(corpus, config), overrides), show_progress=is_terminal())
    typer.echo(audit_report(prepared))


def _prepare_sources(corpus: str | None, config: list[str] | None) -> list[str]:
    if corpus is not None and config:
        raise UsageError(f"{corpus!r} and --config: name the corpus or give a configuration, not both")
    if corpus is not None and corpus not in CORPUS_CONFIGS:
        raise UsageError(f"corpus {corpus!r}: known by name are {', '.join(CORPUS_CONFIGS)}; for others give -c CONFIG")
    return config or [CORPUS_CONFIGS[corpus or "multi30k"]]
