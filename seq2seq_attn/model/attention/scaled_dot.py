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
    """Scaled dot-product attention: the score is the dot product of the projected query and the
    projected value, divided by the square root of their size.

    Args:
        attention_size: A, the size that query and values are projected to; None stands for the
            query size.
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
        """Return the scores (W_q q) . key / sqrt(A)."""
        return super().scores(self.query_projection(query_BH) * self.scale, keys_BSA)
