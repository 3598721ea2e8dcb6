"""The long short-term memory with layer normalization (Ba, Kiros, Hinton 2016, section 3.1 and supplementary material).

    [i f g o] = LN(W x) + LN(U h)      c' = sigmoid(f) * c + sigmoid(i) * tanh(g)
    h' = sigmoid(o) * tanh(LN(c'))

The four parts are normalized together; each of the three LN has a gain and a bias of its own. The cell's memory c is 0
at first.
"""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from seq2seq_attn.model.cell.base import NormalizedCell
from seq2seq_attn.model.cell.lstm import State


class LayerNormLSTM(NormalizedCell):
    """Pre-activations i, f, g, o side by side: P = 4 * H."""

    def __init__(self, input_sizes: Sequence[int], hidden_size: int) -> None:
        super().__init__(input_sizes, hidden_size, groups=[4])
        self.memory_norm = nn.LayerNorm(hidden_size)

    def start(self, hidden_BH: Tensor) -> State:
        """The hidden state as given, an empty memory."""
        return State(hidden_BH, torch.zeros_like(hidden_BH))

    def step(self, inputs_BP: Tensor, state: State) -> State:
        i, f, g, o = (inputs_BP + self.project_state(state.hidden_BH)).chunk(4, dim=-1)
        memory_BH = torch.sigmoid(f) * state.memory_BH + torch.sigmoid(i) * torch.tanh(g)
        hidden_BH = torch.sigmoid(o) * torch.tanh(self.memory_norm(memory_BH))
        return State(hidden_BH, memory_BH)
