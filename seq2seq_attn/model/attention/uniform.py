"""Uniform weights: the context is the mean of the encoder states.

This variant is a control: it separates the effect of more states in the context from the effect of
choosing among these states. The mean has no order, so it cannot replace the choice.
"""

from seq2seq_attn.data.batch import SourceBatch
from seq2seq_attn.model.attention.base import Attended, ConstantAttention, average
from seq2seq_attn.model.encoder.base import Encoded
from seq2seq_attn.model.layers import wide_dtype


class Uniform(ConstantAttention):
    """Uniform attention: all source positions have equal weights."""

    def __init__(self, *, memory_size: int) -> None:
        super().__init__(memory_size)

    def prepare(self, encoded: Encoded, source: SourceBatch) -> tuple[Attended, None]:
        """Compute the mean of the values, which is the context of every step."""
        is_real_BS = encoded.mask_BS.to(wide_dtype(encoded.values_BSM.dtype))
        weights_BS = is_real_BS / is_real_BS.sum(dim=1, keepdim=True)
        return average(weights_BS, encoded.values_BSM), None
