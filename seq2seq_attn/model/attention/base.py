"""The attention contract: what a variant is, and the tail that all variants share.

A variant is a file of this folder with one final class and a function `build(*, query_size, memory_size, **options)`.
Its two phases keep nothing on `self`: `prepare` does what does not depend on the query, once per source batch; `score`
is asked at each step.

Shapes: B sentence pairs (or rows in search), S source positions, H query size, M memory (value) size, A scoring size.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import NamedTuple

import torch
from torch import Tensor, nn


class Memory(NamedTuple):
    """What does not depend on the query; made once per source batch. Every field is batch-first or None."""

    values_BSM: Tensor
    """what is averaged; 0 on padding"""
    mask_BS: Tensor
    """bool, True = real position; at least one per row"""
    keys_BSA: Tensor | None = None
    """whatever the variant projected once"""


class State(NamedTuple):
    """What one target step hands to the next; batch-first, so that a beam can reorder it."""

    weights_BS: Tensor
    """the last step's weights, in float32 or wider; zeros before the first step"""


class AdditiveScore(NamedTuple):
    """v . tanh(keys + W q): what the fast unroll needs to know of such a score."""

    query_weight_AH: Tensor
    score_weight_A: Tensor


class DotScore(NamedTuple):
    """scale * keys . W q, or scale * keys . q (keys of size H) without a weight."""

    scale: float
    query_weight_AH: Tensor | None = None


class FixedContext(NamedTuple):
    """The weights do not depend on the query: the context is the same at every step."""


FastScore = AdditiveScore | DotScore | FixedContext


class Attention(nn.Module, ABC):
    """Scores of source positions for a query. Variants are final: none inherits from another.

    `memory_size` is the width M of `prepare`'s values (and so of the context), which a variant may change.
    `is_positional` says whether weight j belongs to source position j; the fixed-vector arms have no such weights.
    """

    is_positional: bool = True

    def __init__(self, memory_size: int) -> None:
        super().__init__()
        self.memory_size = memory_size

    @abstractmethod
    def prepare(self, values_BSM: Tensor, mask_BS: Tensor) -> tuple[Memory, State]:
        """The memory of a source batch and the state before the first step. Padded values are never read."""

    @abstractmethod
    def score(self, query_BH: Tensor, memory: Memory, state: State) -> Tensor:
        """`scores_BS`; padding is masked by the caller."""

    def fast_score(self) -> FastScore | None:
        """What the fast unroll may know of this variant; None: it goes through the plain loop."""
        return None

    def attend(self, query_BH: Tensor, memory: Memory, state: State) -> tuple[Tensor, State]:
        """Score, mask, normalise, average: `context_BM` and the state with this step's weights."""
        weights_BS = masked_softmax(self.score(query_BH, memory, state), memory.mask_BS)
        context_BM = torch.bmm(weights_BS.to(memory.values_BSM.dtype).unsqueeze(1), memory.values_BSM).squeeze(1)
        return context_BM, state._replace(weights_BS=weights_BS)


def masked_softmax(scores_BS: Tensor, mask_BS: Tensor) -> Tensor:
    """Softmax over real positions, exactly 0 on padding, in float32 or wider (half precision loses small weights)."""
    wide_BS = scores_BS.to(torch.promote_types(scores_BS.dtype, torch.float32))
    return torch.softmax(wide_BS.masked_fill(~mask_BS, -torch.inf), dim=-1)


def start_memory(values_BSM: Tensor, mask_BS: Tensor, keys_BSA: Tensor | None = None) -> tuple[Memory, State]:
    """Memory and first state of a variant whose weights lie over the given positions."""
    weights_BS = torch.zeros(
        mask_BS.shape, dtype=torch.promote_types(values_BSM.dtype, torch.float32), device=mask_BS.device
    )
    return Memory(values_BSM, mask_BS, keys_BSA), State(weights_BS)


def zero_padding(values_BSM: Tensor, mask_BS: Tensor) -> Tensor:
    """The values with padding set to 0, whatever it held (NaN included): 0 * NaN would be NaN in the average."""
    return values_BSM.masked_fill(~mask_BS.unsqueeze(-1), 0.0)
