"""Key-value attention: one part of each encoder state is scored, the other is averaged (Daniluk et
al. 2017, section 2.2; the two roles are those of key-value memories, Miller et al. 2016, section
3.1).

    [k_j ; v_j] = h_j      e_ij = w . tanh(W_Y k_j + W_h s_{i-1} + b)      c_i = sum_j alpha_ij v_j

W_Y k_j + b is `keys`, W_h is `query_projection`, w is `score_weight_A`, v_j is `values`. The
paper's h_j is the output of one LSTM, cut in the middle. Ours may hold two directions side by side,
so its even coordinates are the key and the odd ones the value: both directions contribute to key
and value. The paper's query is the key part of the current state, ours the decoder's whole state.
The context is half as wide as that of other variants.

The paper's third part, for prediction alone, is not here: it would cut the decoder's state, not the
encoder's. With states as wide as for other variants, the decoder sees half of each, which costs
some BLEU (docs/mechanisms.md).
"""

from seq2seq_attn.config import Size
from seq2seq_attn.model.attention.base import AdditiveAttention, Keys, Normalizer
from seq2seq_attn.model.encoder.base import Encoded


class KeyValue(AdditiveAttention):
    """Additive attention over one half of each value; the context averages the other half.

    Args:
        attention_size: A, the size of the hidden layer; None: the query size.
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
        super().__init__(query_size, memory_size - context_size, attention_size)
        self.context_size = context_size
        self.normalizer = normalizer

    def keys(self, encoded: Encoded) -> Keys:
        """Cut the values in two and project one half to keys, once."""
        values_BSM = encoded.values_BSM
        keys_BSA = self.key_projection(values_BSM[..., 0::2])
        return Keys(values_BSM[..., 1::2].contiguous(), encoded.mask_BS, keys_BSA)
