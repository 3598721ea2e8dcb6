"""What an encoder is: source tokens in, one value per position and a summary out."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import NamedTuple

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
        """Encode embedded tokens (dropout applied) of which the first `lengths_B` of each row are real."""
