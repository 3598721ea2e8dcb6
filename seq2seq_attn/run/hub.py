"""Access to the Hugging Face hub: runs are published there and downloaded from there."""

import importlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from seq2seq_attn.errors import UserError
from seq2seq_attn.runtime.extras import require

HUB = "hf:"
"""prefix of the name of a run on the hub"""


def download(name: str, patterns: Sequence[str]) -> str:
    """Download files of `hf:OWNER/NAME` or `hf:OWNER/NAME@REVISION` whose names match `patterns`,
    and return their folder. Files in the local cache are not downloaded again. Raises UserError if
    the download fails."""
    repository, _, revision = name.removeprefix(HUB).partition("@")
    with open_hub(f"{name}: cannot be downloaded") as hub:
        folder: str = hub.snapshot_download(
            repository, revision=revision or None, allow_patterns=list(patterns)
        )
    return folder


@contextmanager
def open_hub(failure: str) -> Iterator[Any]:
    """Yield the module `huggingface_hub`, which raises many kinds of errors. Each error inside the
    block becomes a UserError whose message begins with `failure`."""
    require("hub", "huggingface_hub")
    try:
        yield importlib.import_module("huggingface_hub")
    except Exception as error:
        raise UserError(
            f"{failure}: {' '.join(str(error).split()) or type(error).__name__}"
        ) from error
