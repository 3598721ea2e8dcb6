"""Encoder variants: the file name is the variant's name, and this folder is the registry."""

from __future__ import annotations

import importlib
import pkgutil

from seq2seq_attn.errors import UsageError
from seq2seq_attn.model.encoder.base import Encoder


def variant_names() -> list[str]:
    """The names `model.encoder.name` takes."""
    return sorted(module.name for module in pkgutil.iter_modules(__path__) if module.name != "base")


def build_encoder(
    name: str, *, num_ids: int, embedding_size: int, hidden_size: int, num_layers: int, dropout: float
) -> Encoder:
    """Build the encoder of that file name.

    Raises:
        UsageError: no such variant.
    """
    if name not in variant_names():
        raise UsageError(f"model.encoder.name={name!r}: no such encoder; encoders are {', '.join(variant_names())}")
    encoder: Encoder = importlib.import_module(f"{__name__}.{name}").build(
        num_ids=num_ids, embedding_size=embedding_size, hidden_size=hidden_size, num_layers=num_layers, dropout=dropout
    )
    return encoder
