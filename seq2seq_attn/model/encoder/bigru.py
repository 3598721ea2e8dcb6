"""The bidirectional GRU encoder (Bahdanau, Cho, Bengio 2015, section 3.2 and appendix A.2.1).

    h_j = [h->_j ; h<-_j]

Both directions run as one batched recurrence. The backward one reads each sentence reversed within its own length, so
that padding comes last for both and never touches a real position.

Shapes: B sentence pairs, S source positions, D = 2 directions, H hidden size of one direction, M = 2 * H, P = 3 * H.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from seq2seq_attn.model.dropout import Dropout
from seq2seq_attn.model.encoder.base import Encoded, Encoder, find_reversal, reverse
from seq2seq_attn.model.gru import gru_unroll


class _Layer(nn.Module):
    """One bidirectional layer over [S, B, I] inputs."""

    def __init__(self, input_size: int, hidden_size: int) -> None:
        super().__init__()
        self.hidden_size = hidden_size
        self.input_projections = nn.ModuleList(nn.Linear(input_size, 3 * hidden_size) for _ in range(2))
        self.recurrent_weight_DPH = nn.Parameter(torch.empty(2, 3 * hidden_size, hidden_size))
        self.recurrent_bias_DP = nn.Parameter(torch.zeros(2, 3 * hidden_size))

    def forward(self, inputs_SBI: Tensor, reversal_SB: Tensor) -> tuple[Tensor, Tensor]:
        """The states of both directions in reading order, [S, B, H] each; the backward one still reversed."""
        forward_SBP = self.input_projections[0](inputs_SBI)
        backward_SBP = self.input_projections[1](reverse(inputs_SBI, reversal_SB))
        hidden_DBH = self.recurrent_weight_DPH.new_zeros(2, inputs_SBI.shape[1], self.hidden_size)
        states_SDBH = gru_unroll(
            torch.stack([forward_SBP, backward_SBP], dim=1),
            hidden_DBH,
            self.recurrent_weight_DPH,
            self.recurrent_bias_DP,
        )
        return states_SDBH[:, 0], states_SDBH[:, 1]


class BiGRU(Encoder):
    """`num_layers` bidirectional layers with dropout between them and on the last one's states."""

    def __init__(self, num_ids: int, embedding_size: int, hidden_size: int, num_layers: int, dropout: float) -> None:
        super().__init__(num_ids, embedding_size, 2 * hidden_size)
        sizes = [embedding_size] + [2 * hidden_size] * (num_layers - 1)
        self.layers = nn.ModuleList(_Layer(size, hidden_size) for size in sizes)
        self.dropout = Dropout(dropout)

    def forward(self, embedded_BSE: Tensor, lengths_B: Tensor) -> Encoded:
        """See `Encoder.forward`."""
        outputs_SBI = embedded_BSE.transpose(0, 1)
        num_positions, num_rows = outputs_SBI.shape[:2]
        reversal_SB = find_reversal(lengths_B, num_positions)
        for layer in self.layers:
            forward_SBH, reversed_SBH = layer(outputs_SBI, reversal_SB)
            outputs_SBI = self.dropout(torch.cat([forward_SBH, reverse(reversed_SBH, reversal_SB)], dim=-1))
        last_B, rows_B = reversal_SB[0], torch.arange(num_rows, device=embedded_BSE.device)
        final_BM = torch.cat([forward_SBH[last_B, rows_B], reversed_SBH[last_B, rows_B]], dim=-1)
        return Encoded(outputs_SBI.transpose(0, 1).contiguous(), final_BM)


def build(*, num_ids: int, embedding_size: int, hidden_size: int, num_layers: int, dropout: float) -> BiGRU:
    """`hidden_size` is that of one direction."""
    return BiGRU(num_ids, embedding_size, hidden_size, num_layers, dropout)
