"""Cosine attention, a variant from outside the package: content-based addressing (Graves, Wayne, Danihelka 2014,
section 3.3.1) with a learned sharpness.

    score(q, h_s) = beta cos(q, W h_s)

    seq2seq train -c quickstart --import cosine --set model.attention.name=cosine
    seq2seq translate --import cosine "Ein Hund rennt."
"""

import torch
from torch import Tensor, nn
from torch.nn.functional import normalize

from seq2seq_attn.model.attention.base import Attention, Memory, State, start_memory, zero_padding


class Cosine(Attention):
    """The cosine of the angle between the query and a projection of each value."""

    def __init__(self, query_size: int, memory_size: int, sharpness: float) -> None:
        super().__init__(memory_size)
        self.key_projection = nn.Linear(memory_size, query_size, bias=False)
        self.sharpness = nn.Parameter(torch.tensor(sharpness))

    def prepare(self, values_BSM: Tensor, mask_BS: Tensor) -> tuple[Memory, State]:
        """Project the values to keys of length 1, once per source batch."""
        values_BSM = zero_padding(values_BSM, mask_BS)
        return start_memory(values_BSM, mask_BS, normalize(self.key_projection(values_BSM), dim=-1))

    def score(self, query_BH: Tensor, memory: Memory, state: State) -> Tensor:
        """Sharpness times cosine; the caller masks padding and normalizes."""
        keys_BSA = memory.keys_BSA
        assert keys_BSA is not None
        query_BA = normalize(query_BH, dim=-1).to(keys_BSA.dtype)
        return self.sharpness * torch.bmm(keys_BSA, query_BA.unsqueeze(2)).squeeze(2)


def build(*, query_size: int, memory_size: int, sharpness: float = 10.0) -> Cosine:
    """What `model.attention.name: cosine` builds; `sharpness` is a key of `model.attention.options`."""
    return Cosine(query_size, memory_size, sharpness)
