"""Dot-product attention (Luong, Pham, Manning 2015, section 3.1, eq. 8, "dot").

    score(h_t, h_s) = h_t . h_s

The paper's target state h_t is our query, the source state h_s our value; there are no parameters, so both need one
size.
"""

from __future__ import annotations

import torch
from torch import Tensor

from seq2seq_attn.errors import UsageError
from seq2seq_attn.model.attention.base import Attention, DotScore, Memory, State, start_memory, zero_padding


class Dot(Attention):
    """The query times each value."""

    def prepare(self, values_BSM: Tensor, mask_BS: Tensor) -> tuple[Memory, State]:
        """The values are their own keys."""
        values_BSM = zero_padding(values_BSM, mask_BS)
        return start_memory(values_BSM, mask_BS, values_BSM)

    def score(self, query_BH: Tensor, memory: Memory, state: State) -> Tensor:
        """q . h_s."""
        assert memory.keys_BSA is not None
        return torch.bmm(memory.keys_BSA, query_BH.to(memory.keys_BSA.dtype).unsqueeze(2)).squeeze(2)

    def fast_score(self) -> DotScore:
        """The fast unroll knows this score."""
        return DotScore(1.0)


def build(*, query_size: int, memory_size: int) -> Dot:
    """Raises UsageError where the sizes differ."""
    if query_size != memory_size:
        raise UsageError(
            f"model.attention.name='dot' needs decoder states of the values' size: model.hidden_size={query_size}, but "
            f"the encoder gives {memory_size}; set model.hidden_size=null (as wide as that) or take 'bilinear'"
        )
    return Dot(memory_size)
