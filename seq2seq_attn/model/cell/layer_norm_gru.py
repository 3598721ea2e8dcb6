"""The gated recurrent unit with layer normalization (Ba, Kiros, Hinton 2016, section 3.1 and
supplementary material).

    [r z] = sigmoid(LN(W x) + LN(U h))      n = tanh(LN(W_n x) + r * LN(U_n h))
    h' = (1 - z) * n + z * h

The gates r and z are normalized together, n separately. Each of the four LN has its own gain and
bias. (The paper's z is our 1 - z.) Rescaling the inputs does not rescale the pre-activations.
"""

from seq2seq_attn.model.cell.gru import GRU


class LayerNormGRU(GRU):
    """A gated recurrent unit that computes the steps of `gru` from normalized projections."""

    norm_groups = (2, 1)
