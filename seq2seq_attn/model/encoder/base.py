"""The contract of encoders: a source batch in, one value per position and a summary out; and shared helpers.

A variant is a file in this folder with one final class and `build`, the class or a function that makes one, which
`model/build.py` calls.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import NamedTuple

from torch import Tensor, nn

from seq2seq_attn.data.batch import SourceBatch


class Encoded(NamedTuple):
    """An encoded source batch. Encoders may leave any values on padding; `zeroed` sets them to 0 before decoders and
    outputs read them."""

    values_BSM: Tensor
    """one vector per position, for example the states of both directions side by side"""
    mask_BS: Tensor
    """bool, True = real position; at least one per row"""
    final_BM: Tensor
    """the summary that the decoder starts from, for example the last state of each direction"""
    embedded_BSE: Tensor | None = None
    """the embeddings of the source tokens; None: the encoder has no `embedding`"""


class Encoder(nn.Module, ABC):
    """`memory_size` is the width M of values and summary."""

    def __init__(self, memory_size: int) -> None:
        super().__init__()
        self.memory_size = memory_size

    @abstractmethod
    def forward(self, source: SourceBatch) -> Encoded:
        """Encode a batch. Padding never changes the values of real positions."""


def zero_padding(values_BSM: Tensor, mask_BS: Tensor) -> Tensor:
    """The values with padding set to 0. NaN in padding would spread to an average, as 0 * NaN is NaN."""
    return values_BSM.masked_fill(~mask_BS.unsqueeze(-1), 0.0)


def zeroed(encoded: Encoded) -> Encoded:
    """Values and embeddings with padding set to 0."""
    values_BSM, mask_BS, final_BM, embedded_BSE = encoded
    embedded_BSE = None if embedded_BSE is None else zero_padding(embedded_BSE, mask_BS)
    return Encoded(zero_padding(values_BSM, mask_BS), mask_BS, final_BM, embedded_BSE)


def mean_value(values_BSM: Tensor, mask_BS: Tensor) -> Tensor:
    """The mean over real positions, `final_BM` of encoders without a last state."""
    return zero_padding(values_BSM, mask_BS).sum(dim=1) / mask_BS.sum(dim=1, keepdim=True)
