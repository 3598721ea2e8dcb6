"""The contract of encoders: a source batch in, one value per position and a summary out.

A variant is a file of this folder with one final class and a function `build`, which `encoder/__init__.py` calls.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import NamedTuple

from torch import Tensor, nn

from seq2seq_attn.data.batch import SourceBatch


class Encoded(NamedTuple):
    """An encoded source batch."""

    values_BSM: Tensor
    """one vector per position, for example the states of both directions side by side; undefined on padding"""
    mask_BS: Tensor
    """bool, True = real position; at least one per row"""
    final_BM: Tensor
    """the summary that the decoder starts from, for example the last state of each direction"""


class Encoder(nn.Module, ABC):
    """`memory_size` is the width M of values and summary."""

    def __init__(self, memory_size: int) -> None:
        super().__init__()
        self.memory_size = memory_size

    @abstractmethod
    def forward(self, source: SourceBatch) -> Encoded:
        """Encode a batch. Padding never changes what a real position holds."""
