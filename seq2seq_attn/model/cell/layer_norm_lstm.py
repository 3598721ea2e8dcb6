"""The long short-term memory with layer normalization (Ba, Kiros, Hinton 2016, section 3.1 and
supplementary material).

    [i f g o] = LN(W x) + LN(U h)      c' = sigmoid(f) * c + sigmoid(i) * tanh(g)
    h' = sigmoid(o) * tanh(LN(c'))

The pre-activations i, f, g and o are normalized together. Each of the three LN has its own gain and
bias. The cell's memory c is 0 before the first step.
"""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from seq2seq_attn.model.cell.lstm import LSTM, State


class LayerNormLSTM(LSTM):
    """A long short-term memory with the gates of `lstm`, whose projections and memory are
    normalized."""

    norm_groups = (4,)

    def __init__(self, input_sizes: Sequence[int], hidden_size: int) -> None:
        super().__init__(input_sizes, hidden_size)
        self.memory_norm = nn.LayerNorm(hidden_size)

    def step(self, inputs_BP: Tensor, state: State) -> State:
        i, f, g, o = (inputs_BP + self.project_state(state.hidden_BH)).chunk(4, dim=-1)
        memory_BH = torch.sigmoid(f) * state.memory_BH + torch.sigmoid(i) * torch.tanh(g)
        hidden_BH = torch.sigmoid(o) * torch.tanh(self.memory_norm(memory_BH))
        return State(hidden_BH, memory_BH)
