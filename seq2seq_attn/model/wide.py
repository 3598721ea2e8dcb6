"""Float32 or wider: the precision of states, weights and losses, also under autocast."""

from __future__ import annotations

import torch
from torch import Tensor


def wide_dtype(dtype: torch.dtype) -> torch.dtype:
    """The dtype itself, if it is as wide as float32, otherwise float32."""
    return torch.promote_types(dtype, torch.float32)


def wide(tensor: Tensor) -> Tensor:
    """The tensor in float32 or wider."""
    return tensor.to(wide_dtype(tensor.dtype))
