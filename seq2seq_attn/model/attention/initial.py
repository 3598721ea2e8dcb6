"""No attention, initial state only: the decoder sees the source through its initial state, and
never again.

This is the model of Sutskever, Vinyals, Le 2014, section 2. The context has size 0, so steps and
readout never read the source.
"""

from seq2seq_attn.data.batch import SourceBatch
from seq2seq_attn.model.attention.base import Attended, ConstantAttention
from seq2seq_attn.model.encoder.base import Encoded
from seq2seq_attn.model.layers import wide


class InitialOnly(ConstantAttention):
    """No context: the memory has one position, whose value has size 0."""

    is_positional = False

    def __init__(self) -> None:
        super().__init__(context_size=0)

    def prepare(self, encoded: Encoded, source: SourceBatch) -> tuple[Attended, None]:
        """Return a context of size 0 for every step."""
        context_BM = encoded.final_BM[:, :0]
        return Attended(context_BM, wide(context_BM.new_ones(context_BM.shape[0], 1))), None
