"""Layers and tensor helpers that several variants and search use:

- embeddings of tokens, vectors and positions;
- conversion to float32 or wider, the precision of states, weights and losses, also under autocast;
- selection of batch rows in nested tuples of tensors;
- deterministic choice of the best next tokens.

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
    """Map ids to vectors. In training, dropout acts on single elements of the vectors."""

    def __init__(self, num_ids: int, size: int, *, dropout: float = 0.0) -> None:
        super().__init__(num_ids, size)
        self.dropout = nn.Dropout(dropout)

    def forward(self, ids: Tensor) -> Tensor:
        """Return the embeddings [..., E] of ids of any shape [...]."""
        vectors: Tensor = self.dropout(super().forward(ids))
        return vectors


class VectorEmbedding(nn.Module):
    """Project input vectors, such as features of picture regions, to the size of token embeddings
    (after Huang et al. 2016). EOS is a vector of zeros, so its embedding is the bias."""

    def __init__(self, vector_size: int, size: int, *, dropout: float) -> None:
        super().__init__()
        self.projection = nn.Linear(vector_size, size)
        self.embedding_dim = size
        self.dropout = nn.Dropout(dropout)

    def forward(self, vectors: Tensor) -> Tensor:
        """Return the embeddings [..., E] of vectors [..., F]."""
        embedded: Tensor = self.dropout(wide(self.projection(vectors)))
        return embedded


SourceEmbedding = Embedding | VectorEmbedding
"""the embedding of an encoder, which reads `SourceBatch.inputs`"""


class Positions(nn.Module):
    """Add a learned vector for each position (Gehring et al. 2016, section 3.1). All positions
    after the last learned position share its vector."""

    def __init__(self, num_positions: int, size: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(num_positions, size)

    def forward(self, embedded_BSE: Tensor) -> Tensor:
        """Return the sum of embeddings and position vectors, [B, S, E]."""
        positions_S = torch.arange(embedded_BSE.shape[1], device=embedded_BSE.device)
        positions_S = positions_S.clamp(max=self.embedding.num_embeddings - 1)
        added: Tensor = embedded_BSE + self.embedding(positions_S)
        return added


def select_rows(fields: Rows, index_R: Tensor) -> Rows:
    """Select batch rows: row i of each returned tensor is row `index_R[i]` of the input tensor. The
    structure stays the same. Search reorders and shortens the batches of a decoder's memory and
    state with it.

    Args:
        fields: a batch-first tensor, or a plain or named tuple of tensors and further tuples. None
            stays None.

    Raises:
        TypeError: `fields` holds an object of another type, whose rows would silently keep their
            order.
    """
    if isinstance(fields, Tensor):
        return cast(Rows, fields.index_select(0, index_R))
    if isinstance(fields, tuple):
        selected = [select_rows(field, index_R) for field in fields]
        return cast(Rows, fields._make(selected) if hasattr(fields, "_make") else tuple(selected))
    if fields is None:
        return fields
    raise TypeError(
        f"memory or state holds a {type(fields).__name__}; expected tensors, or tuples of them"
    )


def wide_dtype(dtype: torch.dtype) -> torch.dtype:
    """Return the dtype if it is as wide as float32, otherwise float32."""
    return torch.promote_types(dtype, torch.float32)


def wide(tensor: Tensor) -> Tensor:
    """Convert a tensor to float32, unless it is as wide already."""
    return tensor.to(wide_dtype(tensor.dtype))


def forbid_tokens_(log_probs_RV: Tensor, forbidden: Iterable[int]) -> Tensor:
    """Set the log-probabilities of forbidden ids to -inf, in place. The remaining log-probabilities
    are not renormalized, so that a hypothesis keeps the model's log-probability."""
    for token_id in forbidden:
        log_probs_RV[:, token_id].fill_(-torch.inf)
    return log_probs_RV


def top_tokens(log_probs_RV: Tensor, num_candidates: int) -> tuple[Tensor, Tensor]:
    """Return the best tokens of each row, best first: `log_probs_RJ` and `ids_RJ` with J =
    min(num_candidates, V). Among equal log-probabilities the lower id comes first (`torch.topk`
    leaves their order open).

    The best J tokens lie in the J blocks of adjacent ids with the largest maxima, so only these
    blocks are searched.
    """
    num_rows, vocab_size = log_probs_RV.shape
    num_candidates = min(num_candidates, vocab_size)
    num_blocks = -(-vocab_size // _BLOCK_SIZE)
    padding = num_blocks * _BLOCK_SIZE - vocab_size
    if padding:
        log_probs_RV = functional.pad(log_probs_RV, (0, padding), value=-torch.inf)
    blocks = log_probs_RV.view(num_rows, num_blocks, _BLOCK_SIZE)
    if num_candidates == 1:
        # An `argmax` over all tokens is sixteen times slower than this maximum over blocks.
        block = blocks.amax(-1).argmax(dim=-1, keepdim=True)
        tokens = blocks.gather(1, block.unsqueeze(-1).expand(-1, -1, _BLOCK_SIZE)).squeeze(1)
        value, index = tokens.max(dim=-1, keepdim=True)
        return value, block * _BLOCK_SIZE + index
    # The chosen blocks are sorted, so that a lower index among the gathered tokens is a lower id.
    chosen = _top_indices(blocks.amax(-1), min(num_candidates, num_blocks)).sort(dim=-1).values
    tokens = blocks.gather(1, chosen.unsqueeze(-1).expand(-1, -1, _BLOCK_SIZE)).flatten(1)
    indices = _top_indices(tokens, num_candidates)
    block = chosen.gather(1, indices.div(_BLOCK_SIZE, rounding_mode="floor"))
    return tokens.gather(1, indices), block * _BLOCK_SIZE + indices % _BLOCK_SIZE


def _top_indices(log_probs: Tensor, count: int) -> Tensor:
    """Return the indices of the `count` largest float32 log-probabilities along the last axis.
    Among equal log-probabilities the lower index comes first.

    These indices have the smallest 64-bit keys. The high half of a key holds the bits of -log p, as
    non-negative floats are ordered like their bits. The low half holds the index.
    """
    negative = torch.rsub(log_probs, 0.0)  # 0 - x: unlike -x, this never gives -0.0
    keys = negative.view(torch.int32).to(torch.int64).bitwise_left_shift_(32)
    keys.add_(torch.arange(log_probs.shape[-1], device=log_probs.device))
    return keys.topk(count, dim=-1, largest=False).values.bitwise_and_(0xFFFFFFFF)
