"""Attention to the source and, beside it, to the decoder's own past states (Paulus, Xiong, Socher
2018, section 2.2, "intra-decoder attention", with the additive score of Cheng, Dong, Lapata 2016,
section 3.2, "intra-attention").

    e_ij = v . tanh(W q_i + U h_j + b)        c_i = sum_j softmax(e_i)_j h_j
    f_ik = v' . tanh(W' q_i + U' q_k + b')    d_i = sum_{k < i} softmax(f_i)_k q_k
    context = [c_i ; d_i]

q_i is the query of step i, a decoder state. q_0 is a vector of zeros: the first step's d is 0, and
later steps that need nothing from the past can attend to q_0, like the sentinel of Merity et al.
2017 (section 2.3). W, U and v are `query_projection`, `key_projection` and `score_weight_A`; W', U'
and v' begin with `history`. The reported weights are the weights over the source.

To copy the word that a past state belongs to, as Merity's pointer does, add the output
`history_pointer`.

Shapes, besides those of `base.py`: K past states; K grows by one per step.
"""

from typing import NamedTuple

import torch
from torch import Tensor, nn

from seq2seq_attn.config import Size
from seq2seq_attn.data.batch import SourceBatch
from seq2seq_attn.model.attention.base import (
    AdditiveAttention,
    Attended,
    Keys,
    Normalizer,
    additive_scores,
)
from seq2seq_attn.model.encoder.base import Encoded
from seq2seq_attn.model.layers import wide_dtype


class State(NamedTuple):
    """The queries of all previous steps, after a first query of zeros, and their keys."""

    history_BKH: Tensor
    keys_BKA: Tensor


class SelfHistory(AdditiveAttention):
    """Two additive attentions, one over the source and one over past queries.

    Args:
        attention_size: A, the size of the hidden layers; None stands for the query size.
    """

    def __init__(
        self,
        *,
        query_size: int,
        memory_size: int,
        normalizer: Normalizer,
        attention_size: Size | None = None,
    ) -> None:
        super().__init__(query_size, memory_size, attention_size, normalizer)
        self.context_size = memory_size + query_size
        attention_size = attention_size or query_size
        self.history_query_projection = nn.Linear(query_size, attention_size, bias=False)
        self.history_key_projection = nn.Linear(query_size, attention_size)
        self.history_score_weight_A = nn.Parameter(torch.empty(attention_size))

    def prepare(self, encoded: Encoded, source: SourceBatch) -> tuple[Keys, State]:
        """Project the values to keys. The history begins with a vector of zeros."""
        values_BSM = encoded.values_BSM
        dtype = wide_dtype(values_BSM.dtype)
        history_B1H = values_BSM.new_zeros(
            values_BSM.shape[0], 1, self.query_projection.in_features, dtype=dtype
        )
        return self.keys(encoded), State(history_B1H, self.history_key_projection(history_B1H))

    def step(self, query_BH: Tensor, memory: Keys, state: State) -> Attended:
        """Attend to the source and to the past queries. The current query joins the history."""
        attended = super().step(query_BH, memory, state)
        context_BM = attended.context_BM
        query_BA = self.history_query_projection(query_BH)
        scores_BK = additive_scores(query_BA, state.keys_BKA, self.history_score_weight_A)
        all_BK = torch.ones_like(scores_BK, dtype=torch.bool)
        past_BH = self.attend(scores_BK, Keys(state.history_BKH, all_BK, state.keys_BKA)).context_BM
        query_B1H = query_BH.to(state.history_BKH.dtype).unsqueeze(1)
        next_state = State(
            torch.cat([state.history_BKH, query_B1H], dim=1),
            torch.cat([state.keys_BKA, self.history_key_projection(query_B1H)], dim=1),
        )
        context_BM = torch.cat([context_BM, past_BH.to(context_BM.dtype)], dim=1)
        return Attended(context_BM, attended.weights_BS, next_state)
