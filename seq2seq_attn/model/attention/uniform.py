"""Uniform weights: the context is the mean of the encoder states.

A control: it separates "the decoder sees more states" from "the decoder chooses among them".
The mean has no order, so it cannot replace that choice.
"""

from seq2seq_attn.data.batch import SourceBatch
from seq2seq_attn.model.attention.base import Attended, ConstantAttention, average
from seq2seq_attn.model.encoder.base import Encoded
from seq2seq_attn.model.layers import wide_dtype


class Uniform(ConstantAttention):
    """Equal weights for all positions."""

    def __init__(self, *, memory_size: int) -> None:
        super().__init__(memory_size)

    def prepare(self, encoded: Encoded, source: SourceBatch) -> tuple[Attended, None]:
        """The mean of the values, once."""
        is_real_BS = encoded.mask_BS.to(wide_dtype(encoded.values_BSM.dtype))
        weights_BS = is_real_BS / is_real_BS.sum(dim=1, keepdim=True)
        return average(weights_BS, encoded.values_BSM), None
