"""Additive attention (Bahdanau, Cho, Bengio 2015, section 3.1 and appendix A.1.2).

    e_ij = v_a . tanh(W_a s_{i-1} + U_a h_j + b)

The paper's W_a is `query_projection`, U_a h_j + b is `keys`, v_a is `score_weight_A`. (The paper has no b; the
concatenation layer of the widely used PyTorch tutorial does.)
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from seq2seq_attn.config import Size
from seq2seq_attn.model.attention.base import AdditiveScore, Attention, Memory, State, start_memory, zero_padding


class Additive(Attention):
    """One hidden layer scores a source position against the query.

    Args:
        attention_size: A, the size of that layer.
    """

    def __init__(self, query_size: int, memory_size: int, attention_size: int) -> None:
        super().__init__(memory_size)
        self.query_projection = nn.Linear(query_size, attention_size, bias=False)
        self.key_projection = nn.Linear(memory_size, attention_size)
        self.score_weight_A = nn.Parameter(torch.empty(attention_size).uniform_(-1.0, 1.0) / attention_size**0.5)

    def prepare(self, values_BSM: Tensor, mask_BS: Tensor) -> tuple[Memory, State]:
        """Project the values to keys, once."""
        values_BSM = zero_padding(values_BSM, mask_BS)
        return start_memory(values_BSM, mask_BS, self.key_projection(values_BSM))

    def score(self, query_BH: Tensor, memory: Memory, state: State) -> Tensor:
        """v . tanh(keys + W q)."""
        assert memory.keys_BSA is not None
        hidden_BSA = torch.tanh(memory.keys_BSA + self.query_projection(query_BH).unsqueeze(1))
        return hidden_BSA @ self.score_weight_A.to(hidden_BSA.dtype)

    def fast_score(self) -> AdditiveScore:
        """The fast unroll knows this score."""
        return AdditiveScore(self.query_projection.weight, self.score_weight_A)


def build(*, query_size: int, memory_size: int, attention_size: Size | None = None) -> Additive:
    """`attention_size` defaults to the query size."""
    return Additive(query_size, memory_size, attention_size or query_size)
