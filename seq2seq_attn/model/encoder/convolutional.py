"""A convolutional encoder (Gehring, Auli, Grangier, Dauphin 2016, sections 3.1 and 3.2). There is
no recurrence, so all positions are computed at once.

    e_j = W (E x_j + l_j) + b
    x^0_j = e_j      x^l_j = tanh(V^l [x^{l-1}_{j-r} ; ... ; x^{l-1}_{j+r}] + c^l + x^{l-1}_j)

l_j is a position embedding, and beyond the sentence x is 0. As in the paper, there are two stacks
of such layers over e: attention scores the output of CNN-a and averages the output of CNN-c. A
value holds both outputs, CNN-a at even indices and CNN-c at odd indices. The attention `key_value`
separates even and odd indices in this way; other attentions score and average both outputs. The
summary is the mean.

Deep stacks are hard to train at the learning rate of `quickstart`: most units of the upper layers
come close to +-1. So the configuration `encoder/convolutional` has two layers in CNN-a and one
layer in CNN-c.

Shapes: B sentence pairs, S source positions, H width of a stack, M = 2 * H.
"""

from typing import cast

import torch
from torch import nn
from torch.nn import functional

from seq2seq_attn.config import NumLayers, Size
from seq2seq_attn.data.batch import SourceBatch
from seq2seq_attn.model.encoder.base import Encoded, Encoder, mean_value, zero_padding
from seq2seq_attn.model.layers import Positions, SourceEmbedding


class Convolutional(Encoder):
    """A convolutional encoder of two stacks over word and position embeddings. Dropout acts before
    each convolution and on the output of each stack.

    Args:
        hidden_size: H, the width of a stack.
        num_layers: number of layers of CNN-a.
        num_value_layers: number of layers of CNN-c; None stands for `num_layers`. (The paper's best
            models have fewer layers in CNN-c.)
        radius: r, neighbors on either side that a layer reads.
        num_positions: number of position embeddings; later positions share the last embedding.
    """

    embedding: SourceEmbedding

    def __init__(
        self,
        *,
        embedding: SourceEmbedding,
        hidden_size: int,
        num_layers: int,
        dropout: float,
        num_value_layers: NumLayers | None = None,
        radius: Size = 1,
        num_positions: Size = 256,
    ) -> None:
        super().__init__(2 * hidden_size, embedding)
        self.positions = Positions(num_positions, embedding.embedding_dim)
        self.projection = nn.Linear(embedding.embedding_dim, hidden_size)
        self.stacks = nn.ModuleList(
            nn.ModuleList(
                nn.Linear((2 * radius + 1) * hidden_size, hidden_size) for _ in range(number)
            )
            for number in (num_layers, num_value_layers or num_layers)
        )
        self.radius = radius
        self.dropout = nn.Dropout(dropout)

    def forward(self, source: SourceBatch) -> Encoded:
        mask_BS = source.mask_BS
        embedded_BSE = self.embedding(source.inputs)
        projected_BSH = self.projection(self.positions(embedded_BSE))
        outputs = []
        for layers in self.stacks:
            output_BSH = projected_BSH
            for layer in cast(nn.ModuleList, layers):
                input_BSH = zero_padding(self.dropout(output_BSH), mask_BS)
                padded = functional.pad(input_BSH, (0, 0, self.radius, self.radius))
                neighbors = [
                    padded[:, first : first + mask_BS.shape[1]]
                    for first in range(2 * self.radius + 1)
                ]
                output_BSH = torch.tanh(layer(torch.cat(neighbors, dim=-1)) + output_BSH)
            outputs.append(self.dropout(output_BSH))
        values_BSM = torch.stack(outputs, dim=-1).flatten(-2)
        return Encoded(values_BSM, mask_BS, mean_value(values_BSM, mask_BS), embedded_BSE)
