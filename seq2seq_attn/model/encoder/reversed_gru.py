"""A GRU that reads the source from its end (Sutskever, Vinyals, Le 2014, section 3.3, with a GRU for the LSTM).

    h_j = GRU(E x_j, h_{j+1})

The first source words are read last, so that they are the freshest in the summary h_1: the paper found that this, and
nothing else it tried, kept long sentences from getting worse.

Shapes: B sentence pairs, S source positions, H = M hidden size, P = 3 * H.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from seq2seq_attn.model.dropout import Dropout
from seq2seq_attn.model.encoder.base import Encoded, Encoder, find_reversal, reverse
from seq2seq_attn.model.gru import gru_unroll


class ReversedGRU(Encoder):
    """`num_layers` layers, all of them right to left, with dropout between them and on the last one's states."""

    def __init__(self, num_ids: int, embedding_size: int, hidden_size: int, num_layers: int, dropout: float) -> None:
        super().__init__(num_ids, embedding_size, hidden_size)
        sizes = [embedding_size] + [hidden_size] * (num_layers - 1)
        self.input_projections = nn.ModuleList(nn.Linear(size, 3 * hidden_size) for size in sizes)
        self.recurrent_weight_LPH = nn.Parameter(torch.empty(num_layers, 3 * hidden_size, hidden_size))
        self.recurrent_bias_LP = nn.Parameter(torch.zeros(num_layers, 3 * hidden_size))
        self.dropout = Dropout(dropout)

    def forward(self, embedded_BSE: Tensor, lengths_B: Tensor) -> Encoded:
        """See `Encoder.forward`."""
        outputs_SBI = embedded_BSE.transpose(0, 1)
        reversal_SB = find_reversal(lengths_B, len(outputs_SBI))
        for layer, projection in enumerate(self.input_projections):
            if layer:
                outputs_SBI = self.dropout(outputs_SBI)
            inputs_SBP = projection(reverse(outputs_SBI, reversal_SB))
            hidden_1BH = self.recurrent_weight_LPH.new_zeros(
                1, outputs_SBI.shape[1], self.recurrent_weight_LPH.shape[-1]
            )
            weight_1PH, bias_1P = (
                self.recurrent_weight_LPH[layer : layer + 1],
                self.recurrent_bias_LP[layer : layer + 1],
            )
            states_SBH = gru_unroll(inputs_SBP.unsqueeze(1), hidden_1BH, weight_1PH, bias_1P).squeeze(1)
            outputs_SBI = reverse(states_SBH, reversal_SB)
        final_BM = outputs_SBI[0]
        return Encoded(self.dropout(outputs_SBI).transpose(0, 1).contiguous(), final_BM)


def build(*, num_ids: int, embedding_size: int, hidden_size: int, num_layers: int, dropout: float) -> ReversedGRU:
    """`hidden_size` is that of a state, which is a value and, of the first word, the summary."""
    return ReversedGRU(num_ids, embedding_size, hidden_size, num_layers, dropout)
