"""Attention with coverage: each source position remembers how it has been translated so far (Tu et al. 2016,
section 3.1.2).

    C_ij = GRU([alpha_ij ; h_j ; s_{i-1}], C_{i-1,j})      e_ij = v_a . tanh(W_a s_{i-1} + U_a h_j + V_a C_{i-1,j})

C is the paper's neural coverage, a vector of D numbers per source position, 0 at first. W_a is `query_projection`,
U_a h_j (plus a bias) is `keys`, V_a is `coverage_projection`, v_a is `score_weight_A`.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor, nn

from seq2seq_attn.config import Size
from seq2seq_attn.data.batch import SourceBatch
from seq2seq_attn.model.attention.base import Attended, Attention, Keys, Normalizer, attend, zero_padding
from seq2seq_attn.model.encoder.base import Encoded


class State(NamedTuple):
    """The coverage of every source position."""

    coverage_BSD: Tensor


class Coverage(Attention):
    """Additive attention whose score sees the coverage.

    Args:
        attention_size: A, the size of the hidden layer.
        coverage_size: D, numbers per source position.
    """

    def __init__(
        self, query_size: int, memory_size: int, attention_size: int, coverage_size: int, normalizer: Normalizer
    ) -> None:
        super().__init__(memory_size)
        self.query_projection = nn.Linear(query_size, attention_size, bias=False)
        self.key_projection = nn.Linear(memory_size, attention_size)
        self.coverage_projection = nn.Linear(coverage_size, attention_size, bias=False)
        self.score_weight_A = nn.Parameter(torch.empty(attention_size))
        self.update = nn.GRUCell(1 + memory_size + query_size, coverage_size)
        self.normalizer = normalizer

    def prepare(self, encoded: Encoded, source: SourceBatch) -> tuple[Keys, State]:
        """Project the values to keys, once; nothing is covered yet."""
        values_BSM = zero_padding(encoded.values_BSM, encoded.mask_BS)
        coverage_BSD = values_BSM.new_zeros(*values_BSM.shape[:2], self.update.hidden_size)
        return Keys(values_BSM, encoded.mask_BS, self.key_projection(values_BSM)), State(coverage_BSD)

    def step(self, query_BH: Tensor, memory: Keys, state: State) -> Attended:
        """v . tanh(keys + W q + V C), normalized; then the coverage is updated."""
        coverage_BSD = state.coverage_BSD
        hidden_BSA = torch.tanh(
            memory.keys_BSA + self.query_projection(query_BH).unsqueeze(1) + self.coverage_projection(coverage_BSD)
        )
        scores_BS = hidden_BSA @ self.score_weight_A.to(hidden_BSA.dtype)
        context_BM, weights_BS = attend(scores_BS, memory.values_BSM, memory.mask_BS, self.normalizer)
        return Attended(
            context_BM, weights_BS, State(self._cover(query_BH, memory.values_BSM, weights_BS, coverage_BSD))
        )

    def _cover(self, query_BH: Tensor, values_BSM: Tensor, weights_BS: Tensor, coverage_BSD: Tensor) -> Tensor:
        """The next coverage."""
        query_BSH = query_BH.unsqueeze(1).expand(-1, values_BSM.shape[1], -1)
        tensors = (weights_BS.unsqueeze(-1), values_BSM, query_BSH)
        inputs = torch.cat([tensor.to(values_BSM.dtype) for tensor in tensors], dim=-1)
        updated: Tensor = self.update(inputs.flatten(0, 1), coverage_BSD.flatten(0, 1).to(values_BSM.dtype))
        return updated.view(coverage_BSD.shape)


def build(
    *,
    query_size: int,
    memory_size: int,
    normalizer: Normalizer,
    attention_size: Size | None = None,
    coverage_size: Size = 10,
) -> Coverage:
    """`attention_size` defaults to the query size."""
    return Coverage(query_size, memory_size, attention_size or query_size, coverage_size, normalizer)
