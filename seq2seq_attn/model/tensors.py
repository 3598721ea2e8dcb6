"""Helpers for tensors: rows of structures of them, and float32 or wider, the precision of states, weights and losses,
also under autocast."""

from typing import TypeVar, cast

import torch
from torch import Tensor

Rows = TypeVar("Rows")


def select_rows(fields: Rows, index_R: Tensor) -> Rows:
    """The same structure with row `index_R[i]` of each tensor as its row i. Search reorders and shortens the batches of
    a decoder's memory and state with it.

    Args:
        fields: a batch-first tensor, or a tuple, named or plain, of tensors and tuples. None stays
            None.

    Raises:
        TypeError: anything else, whose rows would silently stay in the old order.
    """
    if isinstance(fields, Tensor):
        return cast(Rows, fields.index_select(0, index_R))
    if isinstance(fields, tuple):
        parts = [select_rows(field, index_R) for field in fields]
        return cast(Rows, fields._make(parts) if hasattr(fields, "_make") else tuple(parts))
    if fields is None:
        return fields
    raise TypeError(f"memory or state holds a {type(fields).__name__}; expected tensors, or tuples of them")


def wide_dtype(dtype: torch.dtype) -> torch.dtype:
    """The dtype itself, if it is as wide as float32, otherwise float32."""
    return torch.promote_types(dtype, torch.float32)


def wide(tensor: Tensor) -> Tensor:
    """The tensor in float32 or wider."""
    return tensor.to(wide_dtype(tensor.dtype))
