"""The gated recurrent unit with layer normalization (Ba, Kiros, Hinton 2016, section 3.1 and supplementary material).

    [r z] = sigmoid(LN(W x) + LN(U h))      n = tanh(LN(W_n x) + r * LN(U_n h))      h' = (1 - z) * n + z * h

The gates r and z are normalized together, n on its own; each of the four LN has a gain and a bias of its own. (The
paper's z is our 1 - z.) Rescaling the inputs does not rescale the pre-activations.
"""

from collections.abc import Sequence

from torch import Tensor

from seq2seq_attn.model.cell.base import NormalizedCell, State
from seq2seq_attn.model.cell.gru import next_state


class LayerNormGRU(NormalizedCell):
    """Gates r, z, n side by side: P = 3 * H."""

    def __init__(self, input_sizes: Sequence[int], hidden_size: int) -> None:
        super().__init__(input_sizes, hidden_size, groups=[2, 1])

    def step(self, inputs_BP: Tensor, state: State) -> State:
        """The step of `gru`, from normalized projections."""
        return next_state(inputs_BP, self.project_state(state.hidden_BH), state)
