"""Dot-product attention (Luong, Pham, Manning 2015, section 3.1, the score "dot").

    score(h_t, h_s) = h_t . h_s

The source state h_s is the encoder's value. There are no parameters, so query and values must have
the same size.

In our measurements (docs/mechanisms.md) the unscaled scores make the weights sharp; `scaled_dot`
does better.
"""

from seq2seq_attn.errors import UsageError
from seq2seq_attn.model.attention.base import Keys, Normalizer, ScoredAttention
from seq2seq_attn.model.encoder.base import Encoded


class Dot(ScoredAttention):
    """Dot-product attention: the score is the dot product of query and value.

    Raises:
        UsageError: the query and the values differ in size.
    """

    def __init__(self, *, query_size: int, memory_size: int, normalizer: Normalizer) -> None:
        super().__init__(memory_size)
        if query_size != memory_size:
            raise UsageError(
                "model.attention.name='dot' needs decoder states of the values' size: "
                f"model.hidden_size={query_size}, but the encoder gives {memory_size}; set "
                "model.hidden_size=null (the encoder's size), or use bilinear"
            )
        self.normalizer = normalizer

    def keys(self, encoded: Encoded) -> Keys:
        """Return the values as the keys too."""
        return Keys(encoded.values_BSM, encoded.mask_BS, encoded.values_BSM)
