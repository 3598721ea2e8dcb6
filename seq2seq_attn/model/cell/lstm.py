"""The long short-term memory (Hochreiter and Schmidhuber 1997, with the forget gate of Gers et al.
2000).

    i, f, o = sigmoid(W x + U h + d)      g = tanh(W_g x + U_g h + d_g)
    c' = f * c + i * g                    h' = o * tanh(c')

The four parts are ordered i, f, g, o, as in PyTorch's `nn.LSTM`. The cell's memory c is 0 at first.

In our measurements (docs/mechanisms.md) its BLEU is lower than that of the GRU, also when only the
encoder uses it (`bilstm`); that of `layer_norm_lstm` is not. The cause is not known; forget gates
with a bias of 1 at first (Jozefowicz, Zaremba, Sutskever 2015) were no better in one run.
"""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from seq2seq_attn.model.cell.base import GatedCell


class State(NamedTuple):
    """Hidden state and cell memory."""

    hidden_BH: Tensor
    memory_BH: Tensor
    """c in the formula"""


class LSTM(GatedCell):
    """Pre-activations i, f, g, o side by side: P = 4 * H."""

    def __init__(self, input_sizes: Sequence[int], hidden_size: int) -> None:
        super().__init__(input_sizes, hidden_size, num_gates=4)

    def start(self, hidden_BH: Tensor) -> State:
        """The hidden state as given, an empty memory."""
        return State(hidden_BH, torch.zeros_like(hidden_BH))

    def step(self, inputs_BP: Tensor, state: State) -> State:
        inputs_BP = inputs_BP.to(state.hidden_BH.dtype)
        i, f, g, o = (inputs_BP + self.project_state(state.hidden_BH)).chunk(4, dim=-1)
        memory_BH = torch.sigmoid(f) * state.memory_BH + torch.sigmoid(i) * torch.tanh(g)
        return State(torch.sigmoid(o) * torch.tanh(memory_BH), memory_BH)
