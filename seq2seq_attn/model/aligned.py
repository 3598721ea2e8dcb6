"""Memory for logits, in which products run at full speed whatever the number of ids.

Shapes: N rows, V target vocabulary.
"""

from __future__ import annotations

import torch
from torch import Tensor

COLUMN_MULTIPLE = 64


def aligned_empty(num_rows: int, num_ids: int, *, like: Tensor) -> Tensor:
    """`logits_NV`, not filled, of the dtype and on the device of `like`; its rows begin at multiples of 64 numbers.

    Into packed rows of an odd number of ids, MKL's float32 product takes 1.4 times as long.
    """
    width = -(-num_ids // COLUMN_MULTIPLE) * COLUMN_MULTIPLE
    return torch.empty((num_rows, width), dtype=like.dtype, device=like.device)[:, :num_ids]
