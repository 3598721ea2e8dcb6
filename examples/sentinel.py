"""Attention that may look away from the source: a sentinel competes with the source positions for
the weight of each step (Lu, Xiong, Parikh, Socher 2017, "Knowing when to look", section 2.3).

    s = sigmoid(W_g q) * tanh(W_s q)      z_j = v . tanh(U h_j + W q + b)
    z_s = v . tanh(U s + W q + b)         [a ; beta] = softmax([z ; z_s])
    c = sum_j a_j h_j + beta s

q is the query, h_j the value of source position j, and s the sentinel. The weights a over source
positions sum to 1 - beta, the share of the source. In the paper, the sentinel is read from the
memory cell of an LSTM, and its gate from the input and the previous state; here both are read from
the query, which every decoder has. U is shared by positions and sentinel, as in the authors' code.

    seq2seq train -c quickstart --import sentinel --set model.attention.name=sentinel
"""

import torch
from torch import Tensor, nn
from torch.nn import functional

from seq2seq_attn.model.attention.base import AdditiveAttention, Attended, Keys, additive_scores
from seq2seq_attn.model.layers import wide


class Sentinel(AdditiveAttention):
    """Additive attention over the source positions and a sentinel."""

    is_distribution = False

    def __init__(self, *, query_size: int, memory_size: int) -> None:
        super().__init__(query_size, memory_size, attention_size=None)
        self.gate = nn.Linear(query_size, memory_size)
        self.sentinel = nn.Linear(query_size, memory_size)

    def step(self, query_BH: Tensor, memory: Keys, state: None) -> Attended:
        """Divide the weight between the source positions and the sentinel."""
        sentinel_BM = torch.sigmoid(self.gate(query_BH)) * torch.tanh(self.sentinel(query_BH))
        keys_BA = self.key_projection(sentinel_BM)
        query_BA = self.query_projection(query_BH)
        scores_BS = additive_scores(query_BA, memory.keys_BSA, self.score_weight_A)
        scores_BS = wide(scores_BS).masked_fill(~memory.mask_BS, -torch.inf)
        score_B1 = additive_scores(query_BA, keys_BA.unsqueeze(1), self.score_weight_A)
        scores_BX = torch.cat([scores_BS, wide(score_B1)], dim=1)  # X = S + 1
        weights_BX = functional.softmax(scores_BX, dim=1)
        weights_BS = weights_BX[:, :-1]
        attended_BM = torch.bmm(weights_BS.unsqueeze(1), wide(memory.values_BSM)).squeeze(1)
        return Attended(attended_BM + weights_BX[:, -1:] * sentinel_BM, weights_BS)
