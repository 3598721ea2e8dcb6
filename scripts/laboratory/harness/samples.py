"""Inputs that tests and scripts share: the reverse task on ids."""

from __future__ import annotations

import torch

from seq2seq_attn.data.batch import Batch, collate
from seq2seq_attn.model.variants import packaged_variants
from seq2seq_attn.text.vocab import ExtendedIds

FIRST_ID = 4
DRAWING = ("hard", "monotonic")
"""attention variants that draw random numbers in training"""


def repeatable_attentions() -> list[str]:
    """The attention variants that draw no random numbers: another device, or a CUDA graph, would draw others."""
    return [name for name in packaged_variants("attention") if name not in DRAWING]


def reverse_pairs(
    num_pairs: int, *, num_types: int, max_length: int, seed: int
) -> tuple[list[list[int]], list[list[int]]]:
    """Sources of 1 to `max_length` random ids; the target is the source reversed.

    The task is small enough to learn in a test and impossible to guess.
    """
    generator = torch.Generator().manual_seed(seed)
    sources = []
    for _ in range(num_pairs):
        length = int(torch.randint(1, max_length + 1, (1,), generator=generator))
        sources.append(torch.randint(FIRST_ID, FIRST_ID + num_types, (length,), generator=generator).tolist())
    return sources, [source[::-1] for source in sources]


def reverse_batch(num_pairs: int, *, num_types: int, max_length: int, seed: int) -> Batch:
    """The same pairs as a `Batch`."""
    sources, targets = reverse_pairs(num_pairs, num_types=num_types, max_length=max_length, seed=seed)
    extended = [ExtendedIds(*pair) for pair in zip(sources, targets, strict=True)]
    return collate(sources, targets, range(num_pairs), extended=extended)
