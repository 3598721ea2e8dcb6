"""Additive attention (Bahdanau, Cho, Bengio 2015, section 3.1 and appendix A.1.2).

    e_ij = v_a . tanh(W_a s_{i-1} + U_a h_j + b)

s_{i-1} is the query, h_j the encoder's value at source position j. The paper's W_a is
`query_projection`, U_a h_j + b is `keys`, v_a is `score_weight_A`. The paper's formula shows no
bias b.
"""

import torch
from torch import Tensor, nn

from seq2seq_attn.config import Size
from seq2seq_attn.data.batch import SourceBatch
from seq2seq_attn.model.attention.base import Attended, Attention, Keys, Normalizer, attend
from seq2seq_attn.model.encoder.base import Encoded


class Additive(Attention):
    """One hidden layer scores a source position against the query.

    Args:
        attention_size: A, the size of that layer; None: the query size.
    """

    def __init__(
        self,
        *,
        query_size: int,
        memory_size: int,
        normalizer: Normalizer,
        attention_size: Size | None = None,
    ) -> None:
        super().__init__(memory_size)
        attention_size = attention_size or query_size
        self.query_projection = nn.Linear(query_size, attention_size, bias=False)
        self.key_projection = nn.Linear(memory_size, attention_size)
        self.score_weight_A = nn.Parameter(torch.empty(attention_size))
        self.normalizer = normalizer

    def prepare(self, encoded: Encoded, source: SourceBatch) -> tuple[Keys, None]:
        return Keys(
            encoded.values_BSM, encoded.mask_BS, self.key_projection(encoded.values_BSM)
        ), None

    def step(self, query_BH: Tensor, memory: Keys, state: None) -> Attended:
        """v . tanh(keys + W q), normalized."""
        hidden_BSA = torch.tanh(memory.keys_BSA + self.query_projection(query_BH).unsqueeze(1))
        scores_BS = hidden_BSA @ self.score_weight_A
        return Attended(
            *attend(scores_BS, memory.values_BSM, memory.mask_BS, self.normalizer), state
        )
