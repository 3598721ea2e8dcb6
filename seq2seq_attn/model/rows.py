"""Rows of anything that a decoder carries: how search reorders and shortens a batch."""

from __future__ import annotations

from typing import TypeVar, cast

from torch import Tensor

Rows = TypeVar("Rows")


def select_rows(fields: Rows, index_R: Tensor) -> Rows:
    """The same structure, whose row i is the old row `index_R[i]`.

    Args:
        fields: a batch-first tensor, or a named tuple of such, of named tuples, and of what has no rows (which is
            kept).
    """
    if isinstance(fields, Tensor):
        return cast(Rows, fields.index_select(0, index_R))
    if isinstance(fields, tuple):
        parts = [select_rows(field, index_R) for field in fields]
        return cast(Rows, fields._make(parts) if hasattr(fields, "_make") else tuple(parts))
    return fields
