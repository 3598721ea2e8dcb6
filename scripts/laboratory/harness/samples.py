"""Inputs that tests and scripts share: the reverse task on ids, and lines of text that break other tools."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from seq2seq_attn.data.batch import Batch, collate
from seq2seq_attn.data.surface import Surface
from seq2seq_attn.model.variants import packaged_variants

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
    surfaces = [Surface(*pair) for pair in zip(sources, targets, strict=True)]
    return collate(sources, targets, range(num_pairs), surfaces=surfaces)


def hostile_lines(count: int, ordinary: Sequence[str]) -> list[bytes]:
    """Lines that drop, shift or break other tools, among ordinary ones.

    No line holds a line feed, none ends in a carriage return. One line has 10,000 words.
    """
    generator = np.random.default_rng(0)
    kinds = [
        *(line.encode() for line in ordinary),
        b"",
        b"   ",
        b"\x00",
        b"Ein \x00 Hund",
        bytes(range(1, 10)) + b"\x0b\x0c" + bytes(range(14, 32)) + b"x",
        "Ein\u2028Hund\u2029rennt\x85.".encode(),
        "\u200f\u202eשלום\u202c ‏ Hund".encode(),
        "Ein 🐕‍🦺 rennt 👨‍👩‍👧‍👦 ☺️".encode(),
        b"\xff\xfe kein UTF-8 \xc3",
        b"\xed\xa0\x80 surrogate",
        b"a\rb\x1b[31mred\x1b[0m",
        "\ufeffWiese".encode(),
        "e\u0301".encode() * 40,
        b"<unk> <pad> <bos> <eos> ||| @@ \xe2\x96\x81",
        b"Wiese" * 60,
    ]
    lines = [kinds[i] for i in generator.integers(0, len(kinds), count)]
    lines[count // 3] = b"Hund " * 10_000
    return lines
