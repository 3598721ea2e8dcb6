"""Uniform weights: the context is the mean of the encoder states.

A control: it separates "the decoder sees more states" from "the decoder chooses among them".
The mean has no order, so it cannot replace that choice.
"""

from __future__ import annotations

import torch
from torch import Tensor

from seq2seq_attn.data.batch import SourceBatch
from seq2seq_attn.model.attention.base import Attended, Attention, Normalizer, SameContext, Stateless, attend
from seq2seq_attn.model.encoder.base import Encoded


class Uniform(Attention):
    """Equal scores for all positions."""

    is_learned = False

    def __init__(self, memory_size: int, normalizer: Normalizer) -> None:
        super().__init__(memory_size)
        self.normalizer = normalizer

    def prepare(self, encoded: Encoded, source: SourceBatch) -> tuple[SameContext, Stateless]:
        """The mean of the values, once."""
        values_BSM = encoded.values_BSM
        scores_BS = torch.zeros(encoded.mask_BS.shape, dtype=encoded.final_BM.dtype, device=values_BSM.device)
        return SameContext(*attend(scores_BS, values_BSM, encoded.mask_BS, self.normalizer)), Stateless()

    def step(self, query_BH: Tensor, memory: SameContext, state: Stateless) -> Attended:
        """The mean, whatever the query."""
        return Attended(memory.context_BM, memory.weights_BS, state)


def build(*, memory_size: int, normalizer: Normalizer) -> Uniform:
    """No options."""
    return Uniform(memory_size, normalizer)
