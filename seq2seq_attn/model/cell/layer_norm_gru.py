"""The gated recurrent unit with layer normalization (Ba, Kiros, Hinton 2016, section 3.1 and supplementary material).

    [r z] = sigmoid(LN(W x) + LN(U h))      n = tanh(LN(W_n x) + r * LN(U_n h))      h' = (1 - z) * n + z * h

The gates r and z are normalized together, n on its own; each of the four LN has a gain and a bias of its own. (The
paper's z is our 1 - z.) Whatever the scale of the inputs, the pre-activations keep theirs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from seq2seq_attn.model.cell.base import NormalizedCell


class State(NamedTuple):
    """The hidden state alone."""

    hidden_BH: Tensor


class LayerNormGRU(NormalizedCell):
    """Gates r, z, n side by side: P = 3 * H."""

    def __init__(self, input_sizes: Sequence[int], hidden_size: int) -> None:
        super().__init__(input_sizes, hidden_size, groups=[2, 1])

    def start(self, hidden_BH: Tensor) -> State:
        """The hidden state as given."""
        return State(hidden_BH)

    def step(self, inputs_BP: Tensor, state: State) -> State:
        """The formula above."""
        hidden_BH = state.hidden_BH
        x_r, x_z, x_n = inputs_BP.chunk(3, dim=-1)
        h_r, h_z, h_n = self.project_state(hidden_BH).chunk(3, dim=-1)
        reset, update = torch.sigmoid(x_r + h_r), torch.sigmoid(x_z + h_z)
        new = torch.tanh(x_n + reset * h_n)
        return State(torch.lerp(new.to(hidden_BH.dtype), hidden_BH, update.to(hidden_BH.dtype)))

    def hidden(self, state: State) -> Tensor:
        """The state itself."""
        return state.hidden_BH


def build(*, input_sizes: Sequence[int], hidden_size: int) -> LayerNormGRU:
    """No options."""
    return LayerNormGRU(input_sizes, hidden_size)
