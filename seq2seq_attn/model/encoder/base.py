"""What an encoder is: source tokens in, one value per position and a summary out."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn


class Encoded(NamedTuple):
    """An encoded source batch."""

    values_BSM: Tensor
    """forward and backward state of each position side by side; undefined on padding"""
    final_BM: Tensor
    """the last state of each direction side by side, for the bridge"""


class Encoder(nn.Module, ABC):
    """`embedding` turns ids into vectors; `memory_size` is the width M of the values."""

    def __init__(self, num_ids: int, embedding_size: int, memory_size: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(num_ids, embedding_size)
        self.memory_size = memory_size

    @abstractmethod
    def forward(self, embedded_BSE: Tensor, lengths_B: Tensor) -> Encoded:
        """Encode embedded tokens (dropout applied) of which the first `lengths_B` (on their device) of each row are
        real."""


def find_reversal(lengths_B: Tensor, num_positions: int) -> Tensor:
    """For `reverse`, the position [S, B] that each one trades places with: the sentence turned around within its own
    length, so that padding stays last and is read after all that is real."""
    lengths_1B = lengths_B.unsqueeze(0)
    positions_S1 = torch.arange(num_positions, device=lengths_B.device).unsqueeze(1)
    return torch.where(positions_S1 < lengths_1B, lengths_1B - 1 - positions_S1, positions_S1)


class _Reverse(torch.autograd.Function):
    """A permutation of rows that is its own inverse, so its gradient is itself (indexing's would be a slow scatter)."""

    @staticmethod
    def forward(ctx: Any, inputs_SBI: Tensor, rows: Tensor) -> Tensor:
        ctx.save_for_backward(rows)
        return inputs_SBI.reshape(-1, inputs_SBI.shape[-1]).index_select(0, rows).view(inputs_SBI.shape)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None]:
        (rows,) = ctx.saved_tensors
        grad = grads[0]
        return grad.reshape(-1, grad.shape[-1]).index_select(0, rows).view(grad.shape), None


def reverse(inputs_SBI: Tensor, reversal_SB: Tensor) -> Tensor:
    """Each sentence backwards within its length: position s takes what stood at `reversal_SB[s, b]`."""
    num_rows = inputs_SBI.shape[1]
    rows = (reversal_SB * num_rows + torch.arange(num_rows, device=inputs_SBI.device)).flatten()
    reversed_SBI: Tensor = _Reverse.apply(inputs_SBI, rows)  # type: ignore[no-untyped-call]
    return reversed_SBI
