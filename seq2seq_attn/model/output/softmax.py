"""A softmax over the target vocabulary (Bahdanau, Cho, Bengio 2015, appendix A.2.2).

    p(y_i) = softmax(W_o features_i + b_o)
    L = sum_i [ -(1 - eps) log p(y_i) - eps / V sum_v log p(v) ]

The label smoothing eps is from Szegedy et al. 2016, section 7.
"""

from seq2seq_attn.model.output.base import ScoredOutput


class Softmax(ScoredOutput):
    """A softmax of one linear layer. `ScoredOutput` computes logits, probabilities and loss."""
