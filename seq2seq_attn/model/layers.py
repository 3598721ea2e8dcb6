"""Layers that several variants use: dropout, the embeddings of tokens and of vectors, position embeddings."""

import math

import torch
from torch import Tensor, nn

from seq2seq_attn.model.tensors import wide


class Dropout(nn.Module):
    """Dropout (Srivastava et al. 2014, section 4, with the factor 1 / (1 - rate) in training): `nn.Dropout` with the
    faster random numbers of `dropout_mask`."""

    def __init__(self, rate: float) -> None:
        super().__init__()
        self.rate = rate

    def forward(self, inputs: Tensor) -> Tensor:
        """The inputs, in training times a `dropout_mask`."""
        if not self.training or self.rate == 0.0:
            return inputs
        return inputs * dropout_mask(inputs.shape, self.rate, inputs.device, inputs.dtype)


def dropout_mask(shape: tuple[int, ...], rate: float, device: torch.device, dtype: torch.dtype | None = None) -> Tensor:
    """Elements 1 / (1 - rate) with probability 1 - rate, else 0, from the device's global generator. On a CPU the rate
    is rounded to a multiple of 1/65,536."""
    if device.type != "cpu":
        return torch.empty(shape, device=device, dtype=dtype).bernoulli_(1.0 - rate).div_(1.0 - rate)
    # `bernoulli_` draws a number per element; here 64 random bits give four elements, in a tenth of the time
    count = math.prod(shape)
    bits = torch.empty(-(-count // 4), dtype=torch.int64).random_(-(2**63), None).view(torch.int16)[:count]
    num_dropped = round(rate * 65_536)
    keep = (bits >= num_dropped - 32_768).view(shape)
    return keep.to(dtype or torch.get_default_dtype()).mul_(65_536 / (65_536 - num_dropped))


class Embedding(nn.Embedding):
    """Ids to vectors, with dropout of single elements in training."""

    def __init__(self, num_ids: int, size: int, *, dropout: float = 0.0) -> None:
        super().__init__(num_ids, size)
        self.dropout = Dropout(dropout)

    def forward(self, ids: Tensor) -> Tensor:
        """Ids of any shape [...] to vectors [..., E]."""
        vectors: Tensor = self.dropout(super().forward(ids))
        return vectors


class VectorEmbedding(nn.Module):
    """Project given vectors, such as those of picture regions, to the size of token embeddings (after Huang et al.
    2016). Dropout is that of `Embedding`. EOS is a vector of zeros, so its embedding is the bias."""

    def __init__(self, vector_size: int, size: int, *, dropout: float = 0.0) -> None:
        super().__init__()
        self.projection = nn.Linear(vector_size, size)
        self.embedding_dim = size
        self.dropout = Dropout(dropout)

    def forward(self, vectors: Tensor) -> Tensor:
        """Vectors [..., F] to embeddings [..., E]."""
        embedded: Tensor = self.dropout(wide(self.projection(vectors)))
        return embedded


SourceEmbedding = Embedding | VectorEmbedding
"""the embedding of an encoder; its argument is `SourceBatch.inputs`"""


class Positions(nn.Module):
    """Adds a learned vector for each position (Gehring et al. 2016, section 3.1); all positions past the last share
    its vector."""

    def __init__(self, num_positions: int, size: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(num_positions, size)

    def forward(self, embedded_BSE: Tensor) -> Tensor:
        """The sum, [B, S, E]."""
        positions_S = torch.arange(embedded_BSE.shape[1], device=embedded_BSE.device)
        added: Tensor = embedded_BSE + self.embedding(positions_S.clamp(max=self.embedding.num_embeddings - 1))
        return added
