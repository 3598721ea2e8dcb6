"""Location-aware attention: the score sees the previous step's weights (Chorowski et al. 2015,
section 2.2, eq. 8 and 9).

    f_i = F * alpha_{i-1}      e_ij = w . tanh(W s_{i-1} + V h_j + U f_ij + b)

F holds K filters, `filters` here, and * is a convolution over source positions. W is
`query_projection`, V h_j + b is `keys`, U is `location_projection` and w is `score_weight_A`.
alpha_0 is 0 everywhere.

No gradient flows through alpha_{i-1} into earlier steps: with this gradient, attention learned to
advance by one word per step, and missed the words that stand elsewhere in the source.
"""

import torch
from torch import Tensor, nn

from seq2seq_attn.config import Size
from seq2seq_attn.data.batch import SourceBatch
from seq2seq_attn.model.attention.base import AdditiveAttention, Attended, Keys, Normalizer
from seq2seq_attn.model.encoder.base import Encoded
from seq2seq_attn.model.layers import wide_dtype


class Location(AdditiveAttention):
    """Additive attention with features of the previous weights around each position.

    Args:
        attention_size: A, the size of the hidden layer; None stands for the query size.
        num_filters: K, convolution filters over the previous weights.
        radius: positions on either side that a filter sees.
    """

    def __init__(
        self,
        *,
        query_size: int,
        memory_size: int,
        normalizer: Normalizer,
        attention_size: Size | None = None,
        num_filters: Size = 10,
        radius: Size = 3,
    ) -> None:
        super().__init__(query_size, memory_size, attention_size, normalizer)
        self.filters = nn.Conv1d(1, num_filters, 2 * radius + 1, padding=radius, bias=False)
        self.location_projection = nn.Linear(num_filters, attention_size or query_size, bias=False)

    def prepare(self, encoded: Encoded, source: SourceBatch) -> tuple[Keys, Tensor]:
        """Return the keys, and the weights `weights_BS` of the previous step, which are 0 before
        the first step."""
        dtype = wide_dtype(encoded.values_BSM.dtype)
        return self.keys(encoded), torch.zeros_like(encoded.mask_BS, dtype=dtype)

    def step(self, query_BH: Tensor, memory: Keys, state: Tensor) -> Attended:
        """Normalize the scores w . tanh(keys + W q + U f)."""
        location_BSK = self.filters(state.unsqueeze(1)).transpose(1, 2)
        scores_BS = self.scores(query_BH, memory.keys_BSA, self.location_projection(location_BSK))
        attended = self.attend(scores_BS, memory)
        return attended._replace(state=attended.weights_BS.detach())
