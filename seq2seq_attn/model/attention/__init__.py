"""Attention variants: the file name is the variant's name, and this folder is the registry."""

from __future__ import annotations

import difflib
import importlib
import inspect
import pkgutil
from typing import Any

from seq2seq_attn.errors import UsageError
from seq2seq_attn.model.attention.base import Attention


def variant_names() -> list[str]:
    """The names `model.attention.name` takes."""
    return sorted(module.name for module in pkgutil.iter_modules(__path__) if module.name != "base")


def build_attention(name: str, *, query_size: int, memory_size: int, options: dict[str, Any]) -> Attention:
    """Build the variant of that file name from the sizes of queries (H) and values (M) and its own options.

    Raises:
        UsageError: no such variant, an option it does not have, or sizes it cannot work with.
    """
    names = variant_names()
    if name not in names:
        nearest = difflib.get_close_matches(name, names, n=1)
        hint = f"did you mean {nearest[0]!r}?" if nearest else f"variants are {', '.join(names)}"
        raise UsageError(f"model.attention.name={name!r}: no such variant; {hint}")
    build = importlib.import_module(f"{__name__}.{name}").build
    allowed = [p for p in inspect.signature(build).parameters if p not in ("query_size", "memory_size")]
    for option in options:
        if option not in allowed:
            raise UsageError(
                f"model.attention.options.{option}: not an option of {name!r}, which has {', '.join(allowed) or 'none'}"
            )
    attention: Attention = build(query_size=query_size, memory_size=memory_size, **options)
    return attention
