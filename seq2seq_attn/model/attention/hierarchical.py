"""Hierarchical attention: first over the positions of each source (or sentence), then over the
sources (Libovicky and Helcl 2017, section 3.3; for sentences Yang et al. 2016, section 2.2).

    e_kj = v . tanh(W s + U h_kj + b)         alpha_k = softmax over j
    c_k = sum_j alpha_kj h_kj
    e_k  = v' . tanh(W' s + U' c_k + b')      beta = softmax over k            c = sum_k beta_k c_k

A row of the batch consists of parts, each of which ends with EOS. With several sources
(`model/sources.py`) the parts are the sources; with `data.tokenizer.sentences` they are the
sentences. If the last sentence has an end mark too, the EOS of the row is one more part. In all
other cases the row is one part, and the variant is then additive attention. The weight of position
j of part k is beta_k alpha_kj. W is `query_projection`, U is `key_projection`; W' and U' are
`part_query_projection` and `part_key_projection`.

Libovicky and Helcl have U, U' and a projection of c_k for each source. Here the parts share U and
U', so that the number of parts may differ between rows, and c_k is not projected: each source has
an encoder of its own. Yang et al. classify documents: their queries are learned vectors, not
decoder states, and a second encoder reads the sentences' vectors.

Shapes, besides those of `base.py`: K parts.
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
from seq2seq_attn.model.sources import source_indices


class Parts(NamedTuple):
    """The values, and the part that each position belongs to."""

    values_BSM: Tensor
    """0 on padding"""
    keys_BSA: Tensor
    is_inside_BKS: Tensor
    """bool, whether a position belongs to a part; for a part that the row lacks, true at every real
    position"""
    exists_BK: Tensor
    """bool, whether the row has this part"""


class Hierarchical(AdditiveAttention):
    """Hierarchical attention: additive attention to the positions of each part, and to the parts.

    Args:
        attention_size: A, the size of the hidden layers of both levels; None stands for the query
            size.
    """

    requires = ("token_values",)
    reads_numbers = True

    def __init__(
        self,
        *,
        query_size: int,
        memory_size: int,
        normalizer: Normalizer,
        attention_size: Size | None = None,
    ) -> None:
        super().__init__(query_size, memory_size, attention_size, normalizer)
        attention_size = attention_size or query_size
        self.part_query_projection = nn.Linear(query_size, attention_size, bias=False)
        self.part_key_projection = nn.Linear(memory_size, attention_size)
        self.part_score_weight_A = nn.Parameter(torch.empty(attention_size))

    def prepare(self, encoded: Encoded, source: SourceBatch) -> tuple[Parts, None]:
        """Project the values to keys, and find the parts."""
        values_BSM, mask_BS, keys_BSA = self.keys(encoded)
        numbers_BS = source_indices(source.ids_BS).masked_fill(~mask_BS, 0)
        # An exported graph cannot read the number of parts in the batch, and uses the number of
        # positions as an upper bound.
        num_parts = (
            numbers_BS.shape[1] if torch.compiler.is_exporting() else int(numbers_BS.max()) + 1
        )
        parts_K = torch.arange(num_parts, device=numbers_BS.device)
        is_inside_BKS = (numbers_BS.unsqueeze(1) == parts_K.unsqueeze(1)) & mask_BS.unsqueeze(1)
        exists_BK = is_inside_BKS.any(dim=2)
        is_inside_BKS = is_inside_BKS | (~exists_BK.unsqueeze(2) & mask_BS.unsqueeze(1))
        return Parts(values_BSM, keys_BSA, is_inside_BKS, exists_BK), None

    def step(self, query_BH: Tensor, memory: Parts, state: None) -> Attended:
        """Compute a context for each part, then the weighted average of these contexts."""
        scores_BS = self.scores(query_BH, memory.keys_BSA)
        scores_BKS = scores_BS.unsqueeze(1).expand_as(memory.is_inside_BKS)
        weights_BKS = self.normalizer(scores_BKS, memory.is_inside_BKS)
        contexts_BKM = torch.bmm(weights_BKS, memory.values_BSM)
        keys_BKA = self.part_key_projection(contexts_BKM)
        query_BA = self.part_query_projection(query_BH)
        scores_BK = additive_scores(query_BA, keys_BKA, self.part_score_weight_A)
        attended = self.attend(scores_BK, Keys(contexts_BKM, memory.exists_BK, keys_BKA))
        weights_BKS = attended.weights_BS.unsqueeze(2) * weights_BKS
        return attended._replace(weights_BS=weights_BKS.sum(dim=1))
