"""The Hugging Face hub, where runs are published and downloaded from."""

import importlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from seq2seq_attn.errors import UserError

HUB = "hf:"
"""begins the name of a run on the hub"""


def download(name: str, patterns: Sequence[str]) -> str:
    """The folder with the files of `hf:OWNER/NAME` or `hf:OWNER/NAME@REVISION` whose names match
    `patterns`, downloaded or taken from the hub's cache. Raises UserError: they cannot be
    downloaded."""
    repository, _, revision = name.removeprefix(HUB).partition("@")
    with open_hub(f"{name}: cannot be downloaded") as hub:
        folder: str = hub.snapshot_download(
            repository, revision=revision or None, allow_patterns=list(patterns)
        )
    return folder


@contextmanager
def open_hub(failure: str) -> Iterator[Any]:
    """The hub's library. Its errors, of which there are many kinds, become a UserError that begins
    with `failure`."""
    try:
        yield importlib.import_module("huggingface_hub")
    except ModuleNotFoundError as error:
        raise UserError(
            f"{error.name}: not installed; run: pip install 'seq2seq-attn[hub]'"
        ) from None
    except Exception as error:
        raise UserError(
            f"{failure}: {' '.join(str(error).split()) or type(error).__name__}"
        ) from error
