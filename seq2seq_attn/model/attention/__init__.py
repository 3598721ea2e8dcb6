"""Attention variants: the file name is the variant's name, and this folder is the registry."""

from __future__ import annotations

from typing import Any

from seq2seq_attn.errors import UsageError
from seq2seq_attn.model.attention.base import Attention
from seq2seq_attn.model.variants import checked_options, find_build, packaged_variants

SIZES = ("query_size", "memory_size")
"""what every variant is built from"""


def variant_names() -> list[str]:
    """The variants of this package."""
    return packaged_variants("attention")


def build_attention(name: str, *, query_size: int, memory_size: int, options: dict[str, Any]) -> Attention:
    """Build a variant, from this folder or an imported module, from the sizes of queries (H) and values (M) and its own
    options.

    Raises:
        UsageError: no such variant, an option it does not have or of another type, or sizes it cannot work with.
    """
    build = find_build("attention", name, SIZES)
    options = checked_options("attention", name, build, SIZES, options)
    attention = build(query_size=query_size, memory_size=memory_size, **options)
    if not isinstance(attention, Attention):
        raise UsageError(f"model.attention.name={name!r}: built {type(attention).__name__}, which is no Attention")
    return attention
