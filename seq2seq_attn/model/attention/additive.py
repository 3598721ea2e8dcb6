"""Additive attention (Bahdanau, Cho, Bengio 2015, section 3.1 and appendix A.1.2).

    e_ij = v_a . tanh(W_a s_{i-1} + U_a h_j + b)

s_{i-1} is the query, h_j the encoder's value at source position j. The paper's W_a is
`query_projection`, U_a h_j + b is `keys`, v_a is `score_weight_A`. The formula in the paper has no
bias b.
"""

from seq2seq_attn.config import Size
from seq2seq_attn.model.attention.base import AdditiveAttention, Normalizer


class Additive(AdditiveAttention):
    """Additive attention: a network with one hidden layer scores a source position against the
    query.

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
        super().__init__(query_size, memory_size, attention_size, normalizer)
