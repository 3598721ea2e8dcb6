"""Scaled dot-product attention (Vaswani et al. 2017, section 3.2.1), here with a recurrent decoder's state as query.

    score = (W_q q) . (W_k h_s) / sqrt(A)

The paper's W^Q is `query_projection`, W^K is `key_projection`; one head, and the values are averaged as they are.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from seq2seq_attn.config import Size
from seq2seq_attn.model.attention.base import Attention, DotScore, Memory, State, start_memory, zero_padding


class ScaledDot(Attention):
    """Projected query times projected values, divided by the root of their size.

    Args:
        attention_size: A, the size both are projected to.
    """

    def __init__(self, query_size: int, memory_size: int, attention_size: int) -> None:
        super().__init__(memory_size)
        self.query_projection = nn.Linear(query_size, attention_size, bias=False)
        self.key_projection = nn.Linear(memory_size, attention_size, bias=False)
        self.scale = attention_size**-0.5

    def prepare(self, values_BSM: Tensor, mask_BS: Tensor) -> tuple[Memory, State]:
        """Project the values to keys, once."""
        values_BSM = zero_padding(values_BSM, mask_BS)
        return start_memory(values_BSM, mask_BS, self.key_projection(values_BSM))

    def score(self, query_BH: Tensor, memory: Memory, state: State) -> Tensor:
        """(W_q q) . key / sqrt(A)."""
        assert memory.keys_BSA is not None
        query_BA = self.query_projection(query_BH) * self.scale
        return torch.bmm(memory.keys_BSA, query_BA.to(memory.keys_BSA.dtype).unsqueeze(2)).squeeze(2)

    def fast_score(self) -> DotScore:
        """The fast unroll knows this score."""
        return DotScore(self.scale, self.query_projection.weight)


def build(*, query_size: int, memory_size: int, attention_size: Size | None = None) -> ScaledDot:
    """`attention_size` defaults to the query size."""
    return ScaledDot(query_size, memory_size, attention_size or query_size)
