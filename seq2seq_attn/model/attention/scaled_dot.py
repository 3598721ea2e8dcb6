"""Scaled dot-product attention (Vaswani et al. 2017, section 3.2.1) with a recurrent decoder's
state as query.

    score = (W_q q) . (W_k h_s) / sqrt(A)

The paper's W^Q is `query_projection`, W^K is `key_projection`. There is one head, and values are
not projected.
"""

from torch import Tensor, nn

from seq2seq_attn.config import Size
from seq2seq_attn.model.attention.base import Normalizer, ScoredAttention


class ScaledDot(ScoredAttention):
    """Projected query times projected values, divided by the root of their size.

    Args:
        attention_size: A, the size that both are projected to; None: the query size.
    """

    def __init__(
        self,
        *,
        query_size: int,
        memory_size: int,
        normalizer: Normalizer,
        attention_size: Size | None = None,
    ) -> None:
        super().__init__(memory_size)
        attention_size = attention_size or query_size
        self.query_projection = nn.Linear(query_size, attention_size, bias=False)
        self.key_projection = nn.Linear(memory_size, attention_size, bias=False)
        self.scale = attention_size**-0.5
        self.normalizer = normalizer

    def scores(self, query_BH: Tensor, keys_BSA: Tensor) -> Tensor:
        """(W_q q) . key / sqrt(A)."""
        return super().scores(self.query_projection(query_BH) * self.scale, keys_BSA)
