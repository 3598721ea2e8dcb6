"""The bidirectional recurrent encoder (Bahdanau, Cho, Bengio 2015, section 3.2 and appendix A.2.1).

    h_j = [h->_j ; h<-_j]

The backward cell reads each sentence reversed within its own length, so that padding comes last for both directions and
never touches a real position.

Shapes: B sentence pairs, S source positions, H hidden size of one direction, M = 2 * H.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import torch
from torch import Tensor, nn

from seq2seq_attn.data.batch import SourceBatch
from seq2seq_attn.model.cell.base import Cell, CellBuilder
from seq2seq_attn.model.dropout import Dropout
from seq2seq_attn.model.embedding import Embedding
from seq2seq_attn.model.encoder.base import Encoded, Encoder
from seq2seq_attn.model.recurrence import find_reversal, reverse, run_cells


class Bidirectional(Encoder):
    """`num_layers` layers of a forward and a backward cell, with dropout between them and on the last one's states.

    Args:
        hidden_size: H.
        dropout: rate of both dropouts.
        is_residual: each layer but the first adds its input to its output.
    """

    def __init__(
        self,
        embedding: Embedding,
        build_cell: CellBuilder,
        *,
        hidden_size: int,
        num_layers: int,
        dropout: float,
        is_residual: bool,
    ) -> None:
        super().__init__(2 * hidden_size)
        self.embedding = embedding
        sizes = [embedding.embedding_dim] + [2 * hidden_size] * (num_layers - 1)
        self.layers = nn.ModuleList(
            nn.ModuleList(build_cell(input_sizes=[size], hidden_size=hidden_size) for _ in range(2)) for size in sizes
        )
        self.dropout = Dropout(dropout)
        self.is_residual = is_residual

    def forward(self, source: SourceBatch) -> Encoded:
        """See `Encoder.forward`."""
        mask_BS = source.mask_BS
        outputs_SBI: Tensor = self.embedding(source.ids_BS.t())
        reversal_SB = find_reversal(mask_BS.sum(dim=1), len(outputs_SBI))
        for number, cells in enumerate(self.layers):
            inputs_SBI = outputs_SBI
            forward_SBH, reversed_SBH = run_cells(
                cast(Sequence[Cell], cells), [inputs_SBI, reverse(inputs_SBI, reversal_SB)]
            )
            outputs_SBI = torch.cat([forward_SBH, reverse(reversed_SBH, reversal_SB)], dim=-1)
            if self.is_residual and number:
                outputs_SBI = outputs_SBI + inputs_SBI
            outputs_SBI = self.dropout(outputs_SBI)
        last_B, rows_B = reversal_SB[0], torch.arange(len(mask_BS), device=mask_BS.device)
        final_BM = torch.cat([forward_SBH[last_B, rows_B], reversed_SBH[last_B, rows_B]], dim=-1)
        return Encoded(outputs_SBI.transpose(0, 1).contiguous(), mask_BS, final_BM)


def build(
    *,
    embedding: Embedding,
    build_cell: CellBuilder,
    hidden_size: int,
    num_layers: int,
    dropout: float,
    residual: bool = False,
) -> Bidirectional:
    """`hidden_size` is that of one direction."""
    return Bidirectional(
        embedding,
        build_cell,
        hidden_size=hidden_size,
        num_layers=num_layers,
        dropout=dropout,
        is_residual=residual,
    )
