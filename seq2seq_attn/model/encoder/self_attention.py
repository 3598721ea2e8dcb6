"""A self-attentive encoder (Vaswani et al. 2017, section 3). There is no recurrence; position
encodings are added to the embeddings.

    h^0_j = sqrt(M) (W E x_j + b) + PE(j)      h^l = layer_l(h^{l-1})      h_j = LN(h^L_j)

The factor sqrt(M) (section 3.4) brings word embeddings to the scale of the position encodings. The
layers are PyTorch's, with layer normalization before each sublayer; LN is one more layer
normalization, after the last layer L. The summary is the mean of the values h_j. Such an encoder
needs more updates than a recurrent encoder.

Shapes: B sentence pairs, S source positions, M = 2 * `hidden_size`, as wide as a bidirectional
encoder of that size.
"""

import math

import torch
from torch import Tensor, nn

from seq2seq_attn.config import Size
from seq2seq_attn.data.batch import SourceBatch
from seq2seq_attn.errors import UsageError
from seq2seq_attn.model.encoder.base import Encoded, Encoder, mean_value
from seq2seq_attn.model.layers import SourceEmbedding


class SelfAttention(Encoder):
    """A self-attentive encoder of `num_layers` layers, each with self-attention and a feed-forward
    network.

    Raises:
        UsageError: `num_heads` does not divide the width M.
    """

    embedding: SourceEmbedding

    def __init__(
        self,
        *,
        embedding: SourceEmbedding,
        hidden_size: int,
        num_layers: int,
        dropout: float,
        num_heads: Size = 2,
        feedforward_ratio: Size = 2,
    ) -> None:
        memory_size = 2 * hidden_size
        super().__init__(memory_size, embedding)
        if memory_size % num_heads:
            raise UsageError(
                f"model.encoder.options.num_heads={num_heads}: expected a divisor of the encoder's "
                f"width, {memory_size}"
            )
        self.projection = nn.Linear(embedding.embedding_dim, memory_size)
        self.layers = nn.ModuleList(
            nn.TransformerEncoderLayer(
                memory_size,
                num_heads,
                feedforward_ratio * memory_size,
                dropout,
                batch_first=True,
                norm_first=True,
            )
            for _ in range(num_layers)
        )
        self.norm = nn.LayerNorm(memory_size)

    def forward(self, source: SourceBatch) -> Encoded:
        mask_BS = source.mask_BS
        embedded_BSE = self.embedding(source.inputs)
        projected_BSM = math.sqrt(self.memory_size) * self.projection(embedded_BSE)
        values_BSM = projected_BSM + sinusoids(mask_BS.shape[1], self.memory_size, projected_BSM)
        for layer in self.layers:
            values_BSM = layer(values_BSM, src_key_padding_mask=~mask_BS)
        values_BSM = self.norm(values_BSM)
        return Encoded(values_BSM, mask_BS, mean_value(values_BSM, mask_BS), embedded_BSE)


def sinusoids(num_positions: int, size: int, like: Tensor) -> Tensor:
    """Return the position encodings of section 3.5, [S, M]. All sines come before all cosines.
    `size` must be even."""
    positions_S1 = torch.arange(num_positions, device=like.device).unsqueeze(1)
    rates = torch.exp(torch.arange(0, size, 2, device=like.device) * (-math.log(10_000.0) / size))
    return torch.cat([torch.sin(positions_S1 * rates), torch.cos(positions_S1 * rates)], dim=1).to(
        like.dtype
    )
