"""The bidirectional recurrent encoder (Bahdanau, Cho, Bengio 2015, section 3.2 and appendix A.2.1).

    h_j = [h->_j ; h<-_j]

The backward cell reads each sentence reversed within its own length, so that padding comes last for
both directions and never touches a real position. With `layers_above: forward` only the first layer
reads in both directions. The layers above have one cell of size M, which reads the states left to
right and combines both directions (Wu et al. 2016, section 3.2).

Shapes: B sentence pairs, S source positions, H hidden size of one direction, M = 2 * H.
"""

from collections.abc import Sequence
from typing import Literal, cast

import torch
from torch import Tensor, nn

from seq2seq_attn.data.batch import SourceBatch
from seq2seq_attn.model.cell.base import Cell, CellBuilder
from seq2seq_attn.model.encoder.base import Encoded, Encoder, find_reversal, read_positions, reverse
from seq2seq_attn.model.layers import SourceEmbedding


class Bidirectional(Encoder):
    """A bidirectional encoder of `num_layers` layers, each with a forward and a backward cell.
    Dropout acts between layers and on the states of the last layer.

    Args:
        hidden_size: H, the hidden size of one direction.
        dropout: rate between layers and on the states of the last layer.
        residual: whether each layer but the first adds its input, after dropout, to its output. The
            summary consists of states of the top cells, without the added input.
        layers_above: `bidirectional` if all layers read in both directions; `forward` if each layer
            but the first is one cell of size M that reads left to right.
    """

    embedding: SourceEmbedding

    def __init__(
        self,
        *,
        embedding: SourceEmbedding,
        build_cell: CellBuilder,
        hidden_size: int,
        num_layers: int,
        dropout: float,
        residual: bool = False,
        layers_above: Literal["bidirectional", "forward"] = "bidirectional",
    ) -> None:
        super().__init__(2 * hidden_size, embedding)
        self.layers = nn.ModuleList()
        for index in range(num_layers):
            input_size = 2 * hidden_size if index else embedding.embedding_dim
            sizes = [2 * hidden_size] if index and layers_above == "forward" else [hidden_size] * 2
            cells = [build_cell(input_sizes=[input_size], hidden_size=size) for size in sizes]
            self.layers.append(nn.ModuleList(cells))
        self.dropout = nn.Dropout(dropout)
        self.is_residual = residual

    def forward(self, source: SourceBatch) -> Encoded:
        mask_BS = source.mask_BS
        embedded_SBE: Tensor = self.embedding(source.inputs.transpose(0, 1))
        outputs_SBI = embedded_SBE
        reversal_SB = find_reversal(mask_BS.sum(dim=1), outputs_SBI.shape[0])
        for index, layer in enumerate(self.layers):
            inputs_SBI = outputs_SBI
            forward, *backward = cast(Sequence[Cell], layer)
            outputs_SBI = read_positions(forward, inputs_SBI)
            states = [outputs_SBI]
            if backward:
                states.append(read_positions(backward[0], reverse(inputs_SBI, reversal_SB)))
                outputs_SBI = torch.cat([outputs_SBI, reverse(states[1], reversal_SB)], dim=-1)
            if self.is_residual and index:
                outputs_SBI = outputs_SBI + inputs_SBI
            outputs_SBI = self.dropout(outputs_SBI)
        last_B = reversal_SB[0]
        rows_B = torch.arange(mask_BS.shape[0], device=mask_BS.device)
        final_BM = torch.cat([states_SBH[last_B, rows_B] for states_SBH in states], dim=-1)
        return Encoded(
            outputs_SBI.transpose(0, 1).contiguous(),
            mask_BS,
            final_BM,
            embedded_SBE.transpose(0, 1),
        )
