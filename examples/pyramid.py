"""A pyramid of bidirectional layers: each layer reads pairs of neighbouring states of the layer
below, so that a layer has half as many positions (Chan, Jaitly, Le, Vinyals 2016, "Listen, attend
and spell", section 3.1).

    h^l_j = BiRNN([h^{l-1}_{2j} ; h^{l-1}_{2j+1}], h^l_{j-1})

h^0 are the embeddings, which are 0 behind the end of a sentence. The paper's first layer keeps all
positions; here every layer halves them, and `num_layers` is the number of layers. A position stands
for 2^L tokens. In maps and alignments, its weight is divided among these tokens evenly.

    seq2seq train -c quickstart --import pyramid --set model.encoder.name=pyramid

Shapes: B sentence pairs, S source positions, P positions of the top layer, E embedding size, H
hidden size of one direction, M = 2 * H, I input size of a layer.
"""

from typing import cast

import torch
from torch import Tensor, nn
from torch.nn import functional

from seq2seq_attn.data.batch import SourceBatch
from seq2seq_attn.model.cell.base import Cell, CellBuilder
from seq2seq_attn.model.encoder.base import (
    Encoded,
    Encoder,
    find_reversal,
    mean_value,
    read_positions,
    reverse,
    zero_padding,
)
from seq2seq_attn.model.layers import SourceEmbedding


class Pyramid(Encoder):
    """A pyramid of `num_layers` bidirectional layers. The summary is the mean of the values."""

    keeps_positions = False
    embedding: SourceEmbedding

    def __init__(
        self,
        *,
        embedding: SourceEmbedding,
        build_cell: CellBuilder,
        hidden_size: int,
        num_layers: int,
        dropout: float,
    ) -> None:
        super().__init__(2 * hidden_size, embedding)
        self.layers = nn.ModuleList()
        for index in range(num_layers):
            width = 2 * hidden_size if index else embedding.embedding_dim
            cells = [build_cell(input_sizes=[2 * width], hidden_size=hidden_size) for _ in "ab"]
            self.layers.append(nn.ModuleList(cells))
        self.dropout = nn.Dropout(dropout)

    def forward(self, source: SourceBatch) -> Encoded:
        mask_BS = source.mask_BS
        embedded_BSE: Tensor = self.embedding(source.inputs)
        values_BPM = embedded_BSE
        mask_BP = mask_BS
        for layer in self.layers:
            pairs_BPI = join_pairs(zero_padding(values_BPM, mask_BP))
            mask_BP = join_pairs(mask_BP.unsqueeze(-1)).any(dim=-1)
            forward, backward = cast(list[Cell], layer)
            pairs_PBI = pairs_BPI.transpose(0, 1)
            reversal_PB = find_reversal(mask_BP.sum(dim=1), pairs_PBI.shape[0])
            backward_PBH = read_positions(backward, reverse(pairs_PBI, reversal_PB))
            states = [read_positions(forward, pairs_PBI), reverse(backward_PBH, reversal_PB)]
            values_BPM = self.dropout(torch.cat(states, dim=-1).transpose(0, 1).contiguous())
        final_BM = mean_value(values_BPM, mask_BP)
        spread_BPS = spread_evenly(mask_BS, values_BPM.shape[1], 2 ** len(self.layers))
        return Encoded(values_BPM, mask_BP, final_BM, embedded_BSE, spread_BPS)


def join_pairs(values_BSM: Tensor) -> Tensor:
    """Join the vectors of positions 2 j and 2 j + 1. An odd position at the end is joined to 0."""
    padded = functional.pad(values_BSM, (0, 0, 0, 1))
    return torch.cat([values_BSM[:, 0::2], padded[:, 1::2]], dim=-1)


def spread_evenly(mask_BS: Tensor, num_positions: int, factor: int) -> Tensor:
    """Return the share of position p's weight that token s gets, [B, P, S]: position p stands for
    the real tokens among `factor` * p, ..., `factor` * (p + 1) - 1."""
    tokens_S = torch.arange(mask_BS.shape[1], device=mask_BS.device)
    positions_P1 = torch.arange(num_positions, device=mask_BS.device).unsqueeze(1)
    belongs_PS = tokens_S.div(factor, rounding_mode="floor") == positions_P1
    spread_BPS = (belongs_PS & mask_BS.unsqueeze(1)).float()
    return spread_BPS / spread_BPS.sum(dim=2, keepdim=True).clamp_min(1.0)
