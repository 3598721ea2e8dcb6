"""Which tokens a step may choose, and the best of them, the same ones on every run.

Shapes: R rows in search, V target vocabulary, J candidates of a row.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from seq2seq_attn.text.vocab import BOS, PAD, UNK

_BLOCK_SIZE = 64


def forbid_tokens(log_probs_RV: Tensor, forbid_unk: bool) -> Tensor:
    """The log-probabilities with -inf for what a translation never holds: PAD, BOS and, if asked, UNK. What is left is
    not normalised again: a hypothesis's log-probability stays the model's."""
    forbidden = [PAD, BOS, UNK] if forbid_unk else [PAD, BOS]
    index = torch.tensor(forbidden, device=log_probs_RV.device)
    # In place: the step has just made this tensor, and a copy of it would cost as much as finding the maximum.
    return log_probs_RV.index_fill_(1, index, -torch.inf)


def top_tokens(log_probs_RV: Tensor, num_candidates: int) -> tuple[Tensor, Tensor]:
    """The best tokens of each row, best first, the lower id first among equals: `log_probs_RJ`, `ids_RJ`, with
    J = min(num_candidates, V). (`torch.topk` leaves the order of equals open.)

    The best J tokens lie in the J blocks of neighbouring ids with the largest maxima, so only those are looked into.
    """
    num_rows, vocab_size = log_probs_RV.shape
    num_candidates = min(num_candidates, vocab_size)
    num_blocks = -(-vocab_size // _BLOCK_SIZE)
    padding = num_blocks * _BLOCK_SIZE - vocab_size
    blocks = functional.pad(log_probs_RV, (0, padding), value=-torch.inf).view(num_rows, num_blocks, _BLOCK_SIZE)
    # back into the order of ids, so that a lower place among the gathered tokens is a lower id
    chosen = _top_places(blocks.amax(-1), min(num_candidates, num_blocks)).sort(dim=-1).values
    tokens = blocks.gather(1, chosen.unsqueeze(-1).expand(-1, -1, _BLOCK_SIZE)).flatten(1)
    places = _top_places(tokens, num_candidates)
    block = chosen.gather(1, places.div(_BLOCK_SIZE, rounding_mode="floor"))
    return tokens.gather(1, places), block * _BLOCK_SIZE + places % _BLOCK_SIZE


def _top_places(values: Tensor, count: int) -> Tensor:
    """Places of the `count` largest float32 values along the last axis, largest first, the lower place first among
    equals: `topk` over integers that hold the value's rank in the high half and the place in the low half."""
    bits = (values + 0.0).view(torch.int32)  # + 0.0 turns -0.0 into 0.0
    rank = torch.where(bits < 0, bits ^ 0x7FFFFFFF, bits).to(torch.int64)  # now ordered as the floats are
    width = values.shape[-1]
    reversed_place = torch.arange(width - 1, -1, -1, device=values.device)
    largest = ((rank << 32) + reversed_place).topk(count, dim=-1).values
    return width - 1 - (largest & 0xFFFFFFFF)
