"""Convolutional attention: the score of a position comes from features of its neighborhood
(Allamanis, Peng, Sutton 2016, section 2.1).

    L_1 = ReLU(C * K_1)      L_2 = (L_1 * K_2) (x) h_{t-1}      alpha = softmax(L_2 * K_3)

* is a convolution over source positions, padded so that the length stays; (x) multiplies each
position's features by the query. C are the encoder's values (in the paper, embeddings). K_1 is
`pattern_filters`. K_2 is `feature_filters`, with H filters, one for each number of the query. K_3
is `score_filter`. The context averages C, as in the paper.

The paper also divides L_2 by its norm. We leave the division out: the norm grows with the length of
the sentence, so the weights of long sentences would be flatter.

Shapes, besides those of `base.py`: P filters of the first layer.
"""

import torch
from torch import Tensor, nn

from seq2seq_attn.config import Size
from seq2seq_attn.model.attention.base import Keys, Normalizer, ScoredAttention
from seq2seq_attn.model.encoder.base import Encoded, zero_padding


class Convolutional(ScoredAttention):
    """Convolutional attention: two convolutions over the values, whose features the query
    multiplies, and a third convolution that computes the scores.

    Args:
        num_filters: P, filters of the first layer.
        radius: positions on either side that each of the three convolutions sees.
    """

    def __init__(
        self,
        *,
        query_size: int,
        memory_size: int,
        normalizer: Normalizer,
        num_filters: Size = 64,
        radius: Size = 1,
    ) -> None:
        super().__init__(memory_size)
        width = 2 * radius + 1
        self.pattern_filters = nn.Conv1d(
            memory_size, num_filters, width, padding=radius, bias=False
        )
        self.feature_filters = nn.Conv1d(num_filters, query_size, width, padding=radius, bias=False)
        self.score_filter = nn.Conv1d(query_size, 1, width, padding=radius, bias=False)
        self.normalizer = normalizer

    def keys(self, encoded: Encoded) -> Keys:
        """Apply the two convolutions that do not need the query. The output of the second
        convolution is the keys, of size H. After each convolution, padding is set back to 0."""
        mask_BS = encoded.mask_BS
        values_BSM = encoded.values_BSM
        patterns_BPS = torch.relu(self.pattern_filters(values_BSM.transpose(1, 2)))
        patterns_BSP = zero_padding(patterns_BPS.transpose(1, 2), mask_BS)
        features_BHS = self.feature_filters(patterns_BSP.transpose(1, 2))
        return Keys(values_BSM, mask_BS, zero_padding(features_BHS.transpose(1, 2), mask_BS))

    def scores(self, query_BH: Tensor, keys_BSA: Tensor) -> Tensor:
        """Multiply the features by the query, and compute the scores by the third convolution."""
        gated_BSH = keys_BSA * query_BH.to(keys_BSA.dtype).unsqueeze(1)
        scores_BS: Tensor = self.score_filter(gated_BSH.transpose(1, 2)).squeeze(1)
        return scores_BS
