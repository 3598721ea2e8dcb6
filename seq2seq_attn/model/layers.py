"""Layers and helpers for tensors that several variants use, and search: embeddings; float32 or
wider (the precision of states, weights and losses, also under autocast); rows of structures of
tensors; the best next tokens, deterministically.

Shapes: R rows in search, V target vocabulary, J candidates of a row.
"""

from collections.abc import Iterable
from typing import TypeVar, cast

import torch
from torch import Tensor, nn
from torch.nn import functional

Rows = TypeVar("Rows")
_BLOCK_SIZE = 64


class Embedding(nn.Embedding):
    """Ids to vectors, with dropout of single elements in training."""

    def __init__(self, num_ids: int, size: int, *, dropout: float = 0.0) -> None:
        super().__init__(num_ids, size)
        self.dropout = nn.Dropout(dropout)

    def forward(self, ids: Tensor) -> Tensor:
        """Ids of any shape [...] to vectors [..., E]."""
        vectors: Tensor = self.dropout(super().forward(ids))
        return vectors


class VectorEmbedding(nn.Module):
    """Project given vectors, such as those of picture regions, to the size of token embeddings
    (after Huang et al. 2016). EOS is a vector of zeros, so its
    embedding is the bias."""

    def __init__(self, vector_size: int, size: int, *, dropout: float = 0.0) -> None:
        super().__init__()
        self.projection = nn.Linear(vector_size, size)
        self.embedding_dim = size
        self.dropout = nn.Dropout(dropout)

    def forward(self, vectors: Tensor) -> Tensor:
        """Vectors [..., F] to embeddings [..., E]."""
        embedded: Tensor = self.dropout(wide(self.projection(vectors)))
        return embedded


SourceEmbedding = Embedding | VectorEmbedding
"""the embedding of an encoder; its argument is `SourceBatch.inputs`"""


class Positions(nn.Module):
    """Adds a learned vector for each position (Gehring et al. 2016, section 3.1); all positions
    past the last share its vector."""

    def __init__(self, num_positions: int, size: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(num_positions, size)

    def forward(self, embedded_BSE: Tensor) -> Tensor:
        """The sum, [B, S, E]."""
        positions_S = torch.arange(embedded_BSE.shape[1], device=embedded_BSE.device)
        positions_S = positions_S.clamp(max=self.embedding.num_embeddings - 1)
        added: Tensor = embedded_BSE + self.embedding(positions_S)
        return added


def select_rows(fields: Rows, index_R: Tensor) -> Rows:
    """The same structure with row `index_R[i]` of each tensor as its row i. Search reorders and
    shortens the batches of a decoder's memory and state with it.

    Args:
        fields: a batch-first tensor, or a tuple, named or plain, of tensors and tuples. None stays
            None.

    Raises:
        TypeError: anything else, whose rows would silently stay in the old order.
    """
    if isinstance(fields, Tensor):
        return cast(Rows, fields.index_select(0, index_R))
    if isinstance(fields, tuple):
        parts = [select_rows(field, index_R) for field in fields]
        return cast(Rows, fields._make(parts) if hasattr(fields, "_make") else tuple(parts))
    if fields is None:
        return fields
    raise TypeError(
        f"memory or state holds a {type(fields).__name__}; expected tensors, or tuples of them"
    )


def wide_dtype(dtype: torch.dtype) -> torch.dtype:
    """The dtype itself, if it is as wide as float32, otherwise float32."""
    return torch.promote_types(dtype, torch.float32)


def wide(tensor: Tensor) -> Tensor:
    """The tensor in float32 or wider."""
    return tensor.to(wide_dtype(tensor.dtype))


def forbid_tokens_(log_probs_RV: Tensor, forbidden: Iterable[int]) -> Tensor:
    """Set the log-probabilities of forbidden ids to -inf, in place. The others are not
    renormalized, so that a hypothesis keeps the model's log-probability."""
    for token_id in forbidden:
        log_probs_RV[:, token_id].fill_(-torch.inf)
    return log_probs_RV


def top_tokens(log_probs_RV: Tensor, num_candidates: int) -> tuple[Tensor, Tensor]:
    """The best tokens of each row, best first, ties by the lower id (`torch.topk` leaves the order
    of ties open): `log_probs_RJ` and `ids_RJ` with J = min(num_candidates, V).

    The best J tokens lie in the J blocks of adjacent ids with the largest maxima, so only those are
    searched.
    """
    num_rows, vocab_size = log_probs_RV.shape
    num_candidates = min(num_candidates, vocab_size)
    num_blocks = -(-vocab_size // _BLOCK_SIZE)
    padding = num_blocks * _BLOCK_SIZE - vocab_size
    if padding:
        log_probs_RV = functional.pad(log_probs_RV, (0, padding), value=-torch.inf)
    blocks = log_probs_RV.view(num_rows, num_blocks, _BLOCK_SIZE)
    if num_candidates == 1:
        # an `argmax` over all tokens would be sixteen times slower than this maximum over blocks
        block = blocks.amax(-1).argmax(dim=-1, keepdim=True)
        tokens = blocks.gather(1, block.unsqueeze(-1).expand(-1, -1, _BLOCK_SIZE)).squeeze(1)
        value, index = tokens.max(dim=-1, keepdim=True)
        return value, block * _BLOCK_SIZE + index
    # in the order of ids, so that a lower index among the gathered tokens is a lower id
    chosen = _top_indices(blocks.amax(-1), min(num_candidates, num_blocks)).sort(dim=-1).values
    tokens = blocks.gather(1, chosen.unsqueeze(-1).expand(-1, -1, _BLOCK_SIZE)).flatten(1)
    indices = _top_indices(tokens, num_candidates)
    block = chosen.gather(1, indices.div(_BLOCK_SIZE, rounding_mode="floor"))
    return tokens.gather(1, indices), block * _BLOCK_SIZE + indices % _BLOCK_SIZE


def _top_indices(log_probs: Tensor, count: int) -> Tensor:
    """Indices of the `count` largest float32 log-probabilities along the last axis, ties by the
    lower index.

    They have the smallest 64-bit keys, made of the bits of -log p in the high half (non-negative
    floats are ordered as their bits) and the index in the low half.
    """
    negative = torch.rsub(log_probs, 0.0)  # 0 - x: unlike -x, this never gives -0.0
    keys = negative.view(torch.int32).to(torch.int64).bitwise_left_shift_(32)
    keys.add_(torch.arange(log_probs.shape[-1], device=log_probs.device))
    return keys.topk(count, dim=-1, largest=False).values.bitwise_and_(0xFFFFFFFF)
