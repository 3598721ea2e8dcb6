"""Which tokens a step may choose, and the best of them, the same ones on every run.

Shapes: R rows in search, N of those rows, F features, V target vocabulary, J candidates of a row.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from seq2seq_attn.search.hypothesis import StepModel
from seq2seq_attn.text.vocab import BOS, PAD, UNK

_BLOCK_SIZE = 64
_CPU_ROWS = 32
"""rows whose logits are made and looked through together on a CPU: with 8,000 tokens a mebibyte, which stays in the
cache, and which the C library keeps instead of asking the system for new pages at each step"""


def best_tokens(
    model: StepModel[Any], features_RF: Tensor, num_candidates: int, *, forbid_unk: bool
) -> tuple[Tensor, Tensor]:
    """`log_probs_RJ` (float32) and `ids_RJ` of the most probable tokens that a translation may hold, best first, the
    lower id first among equals; J = min(num_candidates, V)."""
    num_rows = _CPU_ROWS if features_RF.device.type == "cpu" else len(features_RF)
    found = []
    for features_NF in torch.split(features_RF, num_rows):
        log_probs_NV = torch.log_softmax(model.logits(features_NF), dim=-1)
        found.append(top_tokens(forbid_tokens(log_probs_NV, forbid_unk), num_candidates))
    if len(found) == 1:
        return found[0]
    log_probs, ids = zip(*found, strict=True)
    return torch.cat(log_probs), torch.cat(ids)


def forbid_tokens(log_probs_RV: Tensor, forbid_unk: bool) -> Tensor:
    """The log-probabilities with -inf for what a translation never holds: PAD, BOS and, if asked, UNK. What is left is
    not normalised again: a hypothesis's log-probability stays the model's."""
    # In place: the step has just made this tensor, and a copy of it would cost as much as finding the maximum.
    for token_id in (PAD, BOS, UNK) if forbid_unk else (PAD, BOS):
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
