"""Bilinear attention (Luong, Pham, Manning 2015, section 3.1, the score "general").

    score(h_t, h_s) = h_t . W_a h_s

W_a h_s is computed once per sentence, as `keys`. With `is_scaled` the score is divided by sqrt(H),
as `scaled_dot` divides by sqrt(A).

In our measurements (docs/mechanisms.md) the unscaled score falls far behind: the weights soon
choose a single word, often a wrong one.
"""

from torch import nn

from seq2seq_attn.model.attention.base import Keys, Normalizer, ScoredAttention
from seq2seq_attn.model.encoder.base import Encoded


class Bilinear(ScoredAttention):
    """Bilinear attention: the score is the dot product of the query and a linear map of the value.
    With `is_scaled`, the score is divided by the square root of the query size."""

    def __init__(
        self, query_size: int, memory_size: int, normalizer: Normalizer, is_scaled: bool = False
    ) -> None:
        super().__init__(memory_size)
        self.key_projection = nn.Linear(memory_size, query_size, bias=False)
        self.scale = query_size**-0.5 if is_scaled else 1.0
        self.normalizer = normalizer

    def keys(self, encoded: Encoded) -> Keys:
        keys = super().keys(encoded)
        return keys._replace(keys_BSA=keys.keys_BSA * self.scale)
