"""The long short-term memory (Hochreiter and Schmidhuber 1997, with the forget gate of Gers et al.
2000).

    i, f, o = sigmoid(W x + U h + d)      g = tanh(W_g x + U_g h + d_g)
    c' = f * c + i * g                    h' = o * tanh(c')

The pre-activations are in the order i, f, g, o, as in PyTorch's `nn.LSTM`. The cell's memory c is 0
before the first step.

In our measurements (docs/mechanisms.md) the LSTM has a lower BLEU than the GRU, also when only the
encoder uses an LSTM (`bilstm`). The BLEU of `layer_norm_lstm` is not lower. The cause is not known;
forget gates with an initial bias of 1 (Jozefowicz, Zaremba, Sutskever 2015) were no better in one
run.
"""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from seq2seq_attn.model.cell.base import GatedCell


class State(NamedTuple):
    """The hidden state and the cell's memory."""

    hidden_BH: Tensor
    memory_BH: Tensor
    """c in the formula"""


class LSTM(GatedCell):
    """A long short-term memory. The pre-activations i, f, g and o lie side by side: P = 4 * H."""

    def __init__(self, input_sizes: Sequence[int], hidden_size: int) -> None:
        super().__init__(input_sizes, hidden_size, num_gates=4)

    def start(self, hidden_BH: Tensor) -> State:
        """Return the given hidden state with a memory of zeros."""
        return State(hidden_BH, torch.zeros_like(hidden_BH))

    def step(self, inputs_BP: Tensor, state: State) -> State:
        inputs_BP = inputs_BP.to(state.hidden_BH.dtype)
        i, f, g, o = (inputs_BP + self.project_state(state.hidden_BH)).chunk(4, dim=-1)
        memory_BH = torch.sigmoid(f) * state.memory_BH + torch.sigmoid(i) * torch.tanh(g)
        return State(torch.sigmoid(o) * torch.tanh(self.read_memory(memory_BH)), memory_BH)

    def read_memory(self, memory_BH: Tensor) -> Tensor:
        """Return the memory as the hidden state reads it."""
        return memory_BH
