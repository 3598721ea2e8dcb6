"""Key-value attention: one part of each encoder state is scored, the other is averaged (Daniluk et
al. 2017, section 2.2; key-value memories separate the same two roles, Miller et al. 2016, section
3.1).

    [k_j ; v_j] = h_j      e_ij = w . tanh(W_Y k_j + W_h s_{i-1} + b)      c_i = sum_j alpha_ij v_j

W_Y k_j + b is `keys`, W_h is `query_projection`, w is `score_weight_A`, v_j is `values`. The
paper's h_j is the output of one LSTM, whose first half is the key and whose second half is the
value. Our h_j may hold two directions side by side, so its even coordinates are the key and its odd
coordinates are the value: both directions contribute to key and value. The paper's query is the key
part of the decoder's current state; our query is the whole state. The context is half as wide as
that of other variants.

The paper's third part, which only predicts the next token, is left out, because it divides the
decoder's state and not the encoder's. If states are as wide as with other variants, the context
holds half of each state, which costs some BLEU (docs/mechanisms.md).
"""

from seq2seq_attn.config import Size
from seq2seq_attn.model.attention.base import AdditiveAttention, Keys, Normalizer
from seq2seq_attn.model.encoder.base import Encoded


class KeyValue(AdditiveAttention):
    """Additive attention that scores one half of each value and averages the other half.

    Args:
        attention_size: A, the size of the hidden layer; None stands for the query size.
    """

    def __init__(
        self,
        *,
        query_size: int,
        memory_size: int,
        normalizer: Normalizer,
        attention_size: Size | None = None,
    ) -> None:
        context_size = memory_size // 2
        super().__init__(query_size, memory_size - context_size, attention_size, normalizer)
        self.context_size = context_size

    def keys(self, encoded: Encoded) -> Keys:
        """Divide each value into two halves and project the first half to a key."""
        values_BSM = encoded.values_BSM
        keys_BSA = self.key_projection(values_BSM[..., 0::2])
        return Keys(values_BSM[..., 1::2].contiguous(), encoded.mask_BS, keys_BSA)
