"""Encoder variants: the file name is the variant's name, and this folder is the registry."""

from __future__ import annotations

from seq2seq_attn.errors import UsageError
from seq2seq_attn.model.encoder.base import Encoder
from seq2seq_attn.model.variants import find_build, packaged_variants

SIZES = ("num_ids", "embedding_size", "hidden_size", "num_layers", "dropout")
"""what every variant is built from"""


def variant_names() -> list[str]:
    """The variants of this package."""
    return packaged_variants("encoder")


def build_encoder(
    name: str, *, num_ids: int, embedding_size: int, hidden_size: int, num_layers: int, dropout: float
) -> Encoder:
    """Build an encoder, from this folder or an imported module.

    Raises:
        UsageError: no such variant.
    """
    encoder = find_build("encoder", name, SIZES)(
        num_ids=num_ids, embedding_size=embedding_size, hidden_size=hidden_size, num_layers=num_layers, dropout=dropout
    )
    if not isinstance(encoder, Encoder):
        raise UsageError(f"model.encoder.name={name!r}: built {type(encoder).__name__}, which is no Encoder")
    return encoder
