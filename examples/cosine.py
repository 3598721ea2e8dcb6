"""Cosine attention, a variant from outside the package: content-based addressing (Graves, Wayne,
Danihelka 2014, section 3.3.1) with a learned sharpness.

    score(q, h_s) = beta cos(q, W h_s)

    seq2seq train -c quickstart --import cosine --set model.attention.name=cosine
    seq2seq translate --import cosine "Der kleine Hund, den die Frau sieht, schläft heute."
"""

import torch
from torch import Tensor, nn
from torch.nn.functional import normalize

from seq2seq_attn.data.batch import SourceBatch
from seq2seq_attn.model.attention.base import Attended, Attention, Keys, Normalizer, attend
from seq2seq_attn.model.encoder.base import Encoded


class Cosine(Attention):
    """The cosine of the query and a projection of each value."""

    def __init__(
        self, query_size: int, memory_size: int, sharpness: float, normalizer: Normalizer
    ) -> None:
        super().__init__(memory_size)
        self.key_projection = nn.Linear(memory_size, query_size, bias=False)
        self.first_sharpness = sharpness
        self.sharpness_bias = nn.Parameter(torch.zeros(()))
        self.normalizer = normalizer

    def prepare(self, encoded: Encoded, source: SourceBatch) -> tuple[Keys, None]:
        """Project the values to keys of length 1, once per source batch."""
        values_BSM = encoded.values_BSM
        return Keys(
            values_BSM, encoded.mask_BS, normalize(self.key_projection(values_BSM), dim=-1)
        ), None

    def step(self, query_BH: Tensor, memory: Keys, state: None) -> Attended:
        """Sharpness times cosine, normalized."""
        query_BA1 = normalize(query_BH, dim=-1).to(memory.keys_BSA.dtype).unsqueeze(2)
        sharpness = self.first_sharpness + self.sharpness_bias
        scores_BS = sharpness * torch.bmm(memory.keys_BSA, query_BA1).squeeze(2)
        return Attended(
            *attend(scores_BS, memory.values_BSM, memory.mask_BS, self.normalizer), state
        )


def build(
    *, query_size: int, memory_size: int, normalizer: Normalizer, sharpness: float = 10.0
) -> Cosine:
    """Build the variant `cosine`; `sharpness` is a key of `model.attention.options`."""
    return Cosine(query_size, memory_size, sharpness, normalizer)
