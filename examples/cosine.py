"""Cosine attention, a variant from outside the package: content-based addressing (Graves, Wayne,
Danihelka 2014, section 3.3.1) with a learned sharpness.

    score(q, h_s) = beta cos(q, W h_s)

    seq2seq train -c quickstart --import cosine --set model.attention.name=cosine
    seq2seq translate --import cosine "Der kleine Hund, den die Frau sieht, schläft heute."
"""

import torch
from torch import Tensor, nn
from torch.nn.functional import normalize

from seq2seq_attn.model.attention.base import Keys, Normalizer, ScoredAttention
from seq2seq_attn.model.encoder.base import Encoded


class Cosine(ScoredAttention):
    """The cosine of the query and a projection of each value."""

    def __init__(
        self, query_size: int, memory_size: int, sharpness: float, normalizer: Normalizer
    ) -> None:
        super().__init__(memory_size)
        self.key_projection = nn.Linear(memory_size, query_size, bias=False)
        self.first_sharpness = sharpness
        self.sharpness_bias = nn.Parameter(torch.zeros(()))
        self.normalizer = normalizer

    def keys(self, encoded: Encoded) -> Keys:
        """Project the values to keys of length 1, once per source batch."""
        keys = super().keys(encoded)
        return keys._replace(keys_BSA=normalize(keys.keys_BSA, dim=-1))

    def scores(self, query_BH: Tensor, keys_BSA: Tensor) -> Tensor:
        """Sharpness times cosine."""
        query_BA = normalize(query_BH, dim=-1).to(keys_BSA.dtype)
        sharpness = self.first_sharpness + self.sharpness_bias
        return sharpness * super().scores(query_BA, keys_BSA)


def build(
    *, query_size: int, memory_size: int, normalizer: Normalizer, sharpness: float = 10.0
) -> Cosine:
    """Build the variant `cosine`; `sharpness` is a key of `model.attention.options`."""
    return Cosine(query_size, memory_size, sharpness, normalizer)
