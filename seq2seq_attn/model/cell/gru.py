"""The gated recurrent unit (Cho et al. 2014, section 2.3).

    r = sigmoid(W_r x + U_r h + d_r)      z = sigmoid(W_z x + U_z h + d_z)
    n = tanh(W_n x + r * (U_n h + d_n))   h' = (1 - z) * n + z * h

The reset gate r is applied after the product with U_n, as cuDNN and PyTorch's `nn.GRU` do; the
paper applies r before the product. W x includes the input's bias.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from seq2seq_attn.model.cell.base import GatedCell, State


class GRU(GatedCell):
    """A gated recurrent unit. The gates r, z and n lie side by side: P = 3 * H."""

    def __init__(self, input_sizes: Sequence[int], hidden_size: int) -> None:
        super().__init__(input_sizes, hidden_size, num_gates=3)

    def step(self, inputs_BP: Tensor, state: State) -> State:
        hidden_BH = state.hidden_BH
        x_r, x_z, x_n = inputs_BP.to(hidden_BH.dtype).chunk(3, dim=-1)
        h_r, h_z, h_n = self.project_state(hidden_BH).to(hidden_BH.dtype).chunk(3, dim=-1)
        reset = torch.sigmoid(x_r + h_r)
        update = torch.sigmoid(x_z + h_z)
        new = torch.tanh(x_n + reset * h_n)
        return State(torch.lerp(new, hidden_BH, update))
