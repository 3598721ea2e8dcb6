"""Attention over K pooled vectors, between one fixed vector (K = 1) and full attention.

    A = softmax(W_s2 tanh(W_s1 H^T))      slots = A H      e_ik = v . tanh(W s_{i-1} + U slot_k + b)

The encoder states H are pooled by K heads of self-attention (Lin et al. 2017, section 2.1: W_s1 is
`pool_projection`, W_s2 is `pool_scores`), and the decoder attends to the K slots additively (Cifka
and Bojar 2018, section 3.2, "attentive pooling with compound attention"). The size of the memory
does not depend on the sentence's length, so long sentences lose more than with full attention.
"""

import torch
from torch import Tensor, nn

from seq2seq_attn.config import Size
from seq2seq_attn.model.attention.base import (
    Keys,
    Normalizer,
    ScoredAttention,
    additive_scores,
)
from seq2seq_attn.model.encoder.base import Encoded


class Slots(ScoredAttention):
    """Attention over a memory of K slots. The weights are over slots, not over source positions.

    Args:
        num_slots: K, the number of pooled vectors.
        attention_size: A, the size of the hidden layers of pooling and of scoring; None stands for
            the query size.
    """

    is_positional = False

    def __init__(
        self,
        *,
        query_size: int,
        memory_size: int,
        normalizer: Normalizer,
        num_slots: Size = 4,
        attention_size: Size | None = None,
    ) -> None:
        super().__init__(memory_size)
        attention_size = attention_size or query_size
        self.pool_projection = nn.Linear(memory_size, attention_size, bias=False)
        self.pool_scores = nn.Linear(attention_size, num_slots, bias=False)
        self.query_projection = nn.Linear(query_size, attention_size, bias=False)
        self.key_projection = nn.Linear(memory_size, attention_size)
        self.score_weight_A = nn.Parameter(torch.empty(attention_size))
        self.normalizer = normalizer

    def keys(self, encoded: Encoded) -> Keys:
        """Pool the values into K slots and project the slots to keys."""
        slots_BKM = torch.bmm(self.pool(encoded), encoded.values_BSM)
        mask_BK = torch.ones(slots_BKM.shape[:2], dtype=torch.bool, device=slots_BKM.device)
        return Keys(slots_BKM, mask_BK, self.key_projection(slots_BKM))

    def pool(self, encoded: Encoded) -> Tensor:
        """Return the pooling weights of each slot over source positions, [B, K, S]."""
        scores_BSK = self.pool_scores(torch.tanh(self.pool_projection(encoded.values_BSM)))
        return self.normalizer(scores_BSK.transpose(1, 2), encoded.mask_BS.unsqueeze(1))

    def scores(self, query_BH: Tensor, keys_BSA: Tensor) -> Tensor:
        """Return the scores v . tanh(keys + W q) of the slots."""
        return additive_scores(self.query_projection(query_BH), keys_BSA, self.score_weight_A)
