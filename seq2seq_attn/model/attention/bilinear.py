"""Bilinear attention (Luong, Pham, Manning 2015, section 3.1, eq. 8, "general").

    score(h_t, h_s) = h_t . W_a h_s

The paper's target state h_t is our query; W_a h_s is projected once per sentence, as `keys`.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from seq2seq_attn.model.attention.base import Attention, DotScore, Memory, State, start_memory, zero_padding


class Bilinear(Attention):
    """The query times a linear map of each value."""

    def __init__(self, query_size: int, memory_size: int) -> None:
        super().__init__(memory_size)
        self.key_projection = nn.Linear(memory_size, query_size, bias=False)

    def prepare(self, values_BSM: Tensor, mask_BS: Tensor) -> tuple[Memory, State]:
        """Project the values to keys, once."""
        values_BSM = zero_padding(values_BSM, mask_BS)
        return start_memory(values_BSM, mask_BS, self.key_projection(values_BSM))

    def score(self, query_BH: Tensor, memory: Memory, state: State) -> Tensor:
        """q . W h_s."""
        assert memory.keys_BSA is not None
        return torch.bmm(memory.keys_BSA, query_BH.to(memory.keys_BSA.dtype).unsqueeze(2)).squeeze(2)

    def fast_score(self) -> DotScore:
        """The fast unroll knows this score."""
        return DotScore(1.0)


def build(*, query_size: int, memory_size: int) -> Bilinear:
    """No options."""
    return Bilinear(query_size, memory_size)
