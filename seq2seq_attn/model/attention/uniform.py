"""No choice: every real position has the same weight, so the context is the mean of the encoder states.

A control: it separates "the decoder sees more states" from "the decoder chooses among them".
"""

from __future__ import annotations

from torch import Tensor

from seq2seq_attn.model.attention.base import Attention, FixedContext, Memory, State, start_memory, zero_padding


class Uniform(Attention):
    """Equal scores for all positions."""

    def prepare(self, values_BSM: Tensor, mask_BS: Tensor) -> tuple[Memory, State]:
        """Nothing to project."""
        return start_memory(zero_padding(values_BSM, mask_BS), mask_BS)

    def score(self, query_BH: Tensor, memory: Memory, state: State) -> Tensor:
        """0 everywhere."""
        return query_BH.new_zeros(memory.mask_BS.shape)

    def fast_score(self) -> FixedContext:
        """The context is the same at every step."""
        return FixedContext()


def build(*, query_size: int, memory_size: int) -> Uniform:
    """No options."""
    return Uniform(memory_size)
