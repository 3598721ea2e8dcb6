"""Embeddings of tokens and of vectors, with dropout of single numbers and of whole tokens; position embeddings."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from seq2seq_attn.model.dropout import dropout_mask


class Embedding(nn.Embedding):
    """Ids to vectors. Both dropout rates are below 1 and act in training only.

    Args:
        dropout: rate for single elements.
        token_dropout: rate for whole tokens, whose vector becomes 0 (Gal and Ghahramani 2016, section 4.2, but per
            token).
    """

    def __init__(self, num_ids: int, size: int, *, dropout: float = 0.0, token_dropout: float = 0.0) -> None:
        super().__init__(num_ids, size)
        self.dropout, self.token_dropout = dropout, token_dropout

    def forward(self, ids: Tensor) -> Tensor:
        """Ids of any shape [...] to vectors [..., E]."""
        embedded = super().forward(ids)
        factors = _draw_mask(self, ids)
        return embedded if factors is None else embedded * factors


class VectorEmbedding(nn.Module):
    """Project given vectors, such as those of picture regions, to the size of token embeddings (after Huang et al.
    2016). Dropout is that of `Embedding`. EOS is a vector of zeros, so its embedding is the bias."""

    def __init__(self, vector_size: int, size: int, *, dropout: float = 0.0, token_dropout: float = 0.0) -> None:
        super().__init__()
        self.projection = nn.Linear(vector_size, size)
        self.embedding_dim = size
        self.dropout, self.token_dropout = dropout, token_dropout

    def forward(self, vectors: Tensor) -> Tensor:
        """Vectors [..., F] to embeddings [..., E]."""
        embedded: Tensor = self.projection(vectors)
        factors = _draw_mask(self, vectors[..., 0])
        return embedded if factors is None else embedded * factors


SourceEmbedding = Embedding | VectorEmbedding
"""the embedding of an encoder; its argument is `SourceBatch.inputs`"""


def _draw_mask(embedding: SourceEmbedding, tokens: Tensor) -> Tensor | None:
    """The dropout mask [..., E] for tokens [...]; None for no dropout."""
    if not embedding.training or (embedding.dropout == 0.0 and embedding.token_dropout == 0.0):
        return None
    factors = dropout_mask((*tokens.shape, embedding.embedding_dim), embedding.dropout, tokens.device)
    if embedding.token_dropout > 0.0:
        factors *= dropout_mask((*tokens.shape, 1), embedding.token_dropout, tokens.device)
    return factors


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
