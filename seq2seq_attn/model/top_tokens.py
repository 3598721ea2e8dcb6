"""Which tokens a step may choose, and the best of them, the same ones on every run.

Shapes: R rows in search, V target vocabulary, J candidates of a row.
"""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import Tensor
from torch.nn import functional

_BLOCK_SIZE = 64


def forbid_tokens_(log_probs_RV: Tensor, forbidden: Iterable[int]) -> Tensor:
    """The log-probabilities, in place, with -inf for the ids that may not be chosen. What is left is not normalized
    again: a hypothesis's log-probability stays the model's."""
    for token_id in forbidden:
        log_probs_RV[:, token_id].fill_(-torch.inf)
    return log_probs_RV


def top_tokens(log_probs_RV: Tensor, num_candidates: int) -> tuple[Tensor, Tensor]:
    """The best tokens of each row, best first, the lower id first among equals: `log_probs_RJ`, `ids_RJ`, with
    J = min(num_candidates, V). (`torch.topk` leaves the order of equals open.)

    The best J tokens lie in the J blocks of neighbouring ids with the largest maxima, so only those are looked into.
    """
    num_rows, vocab_size = log_probs_RV.shape
    num_candidates = min(num_candidates, vocab_size)
    num_blocks = -(-vocab_size // _BLOCK_SIZE)
    padding = num_blocks * _BLOCK_SIZE - vocab_size
    if padding:
        log_probs_RV = functional.pad(log_probs_RV, (0, padding), value=-torch.inf)
    blocks = log_probs_RV.view(num_rows, num_blocks, _BLOCK_SIZE)
    if num_candidates == 1:
        return _top_token(blocks)
    # back into the order of ids, so that a lower place among the gathered tokens is a lower id
    chosen = _top_places(blocks.amax(-1), min(num_candidates, num_blocks)).sort(dim=-1).values
    tokens = blocks.gather(1, chosen.unsqueeze(-1).expand(-1, -1, _BLOCK_SIZE)).flatten(1)
    places = _top_places(tokens, num_candidates)
    block = chosen.gather(1, places.div(_BLOCK_SIZE, rounding_mode="floor"))
    return tokens.gather(1, places), block * _BLOCK_SIZE + places % _BLOCK_SIZE


def _top_token(blocks: Tensor) -> tuple[Tensor, Tensor]:
    """The one best token of [rows, blocks, tokens of a block]. (`argmax` over all tokens is sixteen times slower than
    their maximum; like it, both of these give the first of equals.)"""
    block = blocks.amax(-1).argmax(dim=-1, keepdim=True)
    tokens = blocks.gather(1, block.unsqueeze(-1).expand(-1, -1, _BLOCK_SIZE)).squeeze(1)
    value, place = tokens.max(dim=-1, keepdim=True)
    return value, block * _BLOCK_SIZE + place


def _top_places(log_probs: Tensor, count: int) -> Tensor:
    """Places of the `count` largest float32 log-probabilities along the last axis, largest first, the lower place first
    among equals: the smallest integers that hold in the high half the bits of the negative, which is not below 0 and so
    ordered as its bits are, and in the low half the place."""
    negative = torch.rsub(log_probs, 0.0)  # 0 - x: unlike -x it makes no -0.0
    keys = negative.view(torch.int32).to(torch.int64).bitwise_left_shift_(32)
    keys.add_(torch.arange(log_probs.shape[-1], device=log_probs.device))
    return keys.topk(count, dim=-1, largest=False).values.bitwise_and_(0xFFFFFFFF)
