"""Kernel attention: the context is a Nadaraya-Watson regression with a Gaussian kernel (Tsai, Bai,
Yamada, Morency, Salakhutdinov 2019, section 3.1).

    score(q, h_s) = -|q - W h_s|^2 / (2 width^2 A)

A is the number of components of q. A small width attends to the nearest keys alone.

    seq2seq train -c quickstart --set model.attention.name=seq2seq_kernel
    seq2seq translate "Der kleine Hund, den die Frau sieht, schläft heute."
"""

from torch import Tensor, nn

from seq2seq_attn.model.attention.base import Normalizer, ScoredAttention


class Kernel(ScoredAttention):
    """Attention by the distance between the query and a projection of each value."""

    def __init__(
        self, query_size: int, memory_size: int, normalizer: Normalizer, width: float = 1.0
    ) -> None:
        super().__init__(memory_size)
        self.key_projection = nn.Linear(memory_size, query_size)
        self.normalizer = normalizer
        self.temperature = 2 * width**2 * query_size

    def scores(self, query_BH: Tensor, keys_BSA: Tensor) -> Tensor:
        """Return the negative squared distances, divided by the temperature."""
        difference_BSA = keys_BSA - query_BH.unsqueeze(1)
        return -difference_BSA.square().sum(dim=2) / self.temperature
