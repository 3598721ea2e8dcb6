"""No attention, a fixed vector: the decoder sees the encoder's summary at every step and in the
readout.

    c = the encoder's summary, [h->_last ; h<-_first] in a bidirectional encoder

(Cho et al. 2014, section 2.2: the summary c enters every step and the output.) This is the strong
fixed-vector baseline. Its translations are worse than with attention on short sentences, and far
worse on long sentences.
"""

from torch import nn

from seq2seq_attn.config.types import DropoutRate
from seq2seq_attn.data.batch import SourceBatch
from seq2seq_attn.model.attention.base import Attended, ConstantAttention
from seq2seq_attn.model.encoder.base import Encoded
from seq2seq_attn.model.layers import wide


class Fixed(ConstantAttention):
    """A fixed vector as the context: the memory has one position, which holds the encoder's
    summary, and the weight of this position is always 1.

    Args:
        dropout: rate on the summary. (The encoder applies its dropout to the values that other
            variants read.)
    """

    is_positional = False

    def __init__(self, memory_size: int, dropout: DropoutRate = 0.0) -> None:
        super().__init__(memory_size)
        self.dropout = nn.Dropout(dropout)

    def prepare(self, encoded: Encoded, source: SourceBatch) -> tuple[Attended, None]:
        """Return the encoder's summary, with dropout, as the context of every step."""
        context_BM = self.dropout(encoded.final_BM)
        return Attended(context_BM, wide(context_BM.new_ones(context_BM.shape[0], 1))), None
