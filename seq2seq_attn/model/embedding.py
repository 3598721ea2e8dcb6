"""Embeddings of tokens and of vectors, with dropout; position embeddings."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from seq2seq_attn.model.dropout import dropout_mask


class Embedding(nn.Embedding):
    """Ids to vectors, with dropout of single elements in training."""

    def __init__(self, num_ids: int, size: int, *, dropout: float = 0.0) -> None:
        super().__init__(num_ids, size)
        self.dropout = dropout

    def forward(self, ids: Tensor) -> Tensor:
        """Ids of any shape [...] to vectors [..., E]."""
        return _dropped(super().forward(ids), self)


class VectorEmbedding(nn.Module):
    """Project given vectors, such as those of picture regions, to the size of token embeddings (after Huang et al.
    2016). Dropout is that of `Embedding`. EOS is a vector of zeros, so its embedding is the bias."""

    def __init__(self, vector_size: int, size: int, *, dropout: float = 0.0) -> None:
        super().__init__()
        self.projection = nn.Linear(vector_size, size)
        self.embedding_dim = size
        self.dropout = dropout

    def forward(self, vectors: Tensor) -> Tensor:
        """Vectors [..., F] to embeddings [..., E]."""
        return _dropped(self.projection(vectors), self)


SourceEmbedding = Embedding | VectorEmbedding
"""the embedding of an encoder; its argument is `SourceBatch.inputs`"""


def _dropped(embedded: Tensor, embedding: SourceEmbedding) -> Tensor:
    """[..., E]; in training times a dropout mask."""
    if not embedding.training or embedding.dropout == 0.0:
        return embedded
    return embedded * dropout_mask(embedded.shape, embedding.dropout, embedded.device)


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
