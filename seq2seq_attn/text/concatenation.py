"""Concatenate sentence pairs (`--concatenate K`, `data.concatenate`): K sources become one, and so do their targets.

This gives inputs longer than any in the corpus, of the same words and with a known number of sentences.
"""

from __future__ import annotations

import math
import random
from collections.abc import Mapping, Sequence

from seq2seq_attn.errors import UsageError
from seq2seq_attn.text.links import parse_pharaoh

Group = tuple[int, ...]
"""indices of the pairs to concatenate, in order"""


def equal_groups(num_pairs: int, k: int, *, seed: int) -> list[Group]:
    """Random disjoint groups of `k` out of `num_pairs` indices. A remainder of fewer than `k` is dropped.

    With `k` = 1, each index by itself, in order.

    Raises:
        ValueError: `k` is not positive.
    """
    if k < 1:
        raise ValueError(f"{k} pairs concatenated: expected at least 1")
    order = list(range(num_pairs))
    if k > 1:
        random.Random(f"stitch {k} {seed}").shuffle(order)  # another word would change every draw
    return [tuple(order[start : start + k]) for start in range(0, num_pairs - k + 1, k)]


def mixed_groups(num_pairs: int, weights: Mapping[int, float], *, seed: str) -> list[Group]:
    """Random disjoint groups that cover every index once, with sizes in these proportions.

    The number of groups of each size does not depend on the seed, so every epoch has the same number of examples.
    Indices left over become groups of one.

    Args:
        num_pairs: number of indices.
        weights: maps the size of a group to its share of the examples; the shares need not sum to 1.
        seed: decides which indices are grouped.

    Raises:
        UsageError: there are too few indices for a group of a size above 1 with a positive share.
        ValueError: a size below 1, a negative share, or no positive share.
    """
    total = sum(weights.values())
    if min(weights, default=0) < 1 or min(weights.values(), default=-1.0) < 0.0 or total <= 0.0:
        given = dict(weights)
        raise ValueError(f"weights {given}: expected sizes of at least 1, and weights of at least 0 that are not all 0")
    mean_size = sum(size * weight for size, weight in weights.items()) / total
    num_groups = num_pairs / mean_size
    order = list(range(num_pairs))
    random.Random(f"stitch {seed}").shuffle(order)  # as above
    groups: list[Group] = []
    start = 0
    for size, weight in sorted(weights.items()):
        count = math.floor(num_groups * weight / total)
        if count == 0 and weight > 0.0 and size > 1:  # those of one are filled up below
            raise UsageError(
                f"data.concatenate.{size}={weight:g}: {num_pairs:,} training pairs make no group of {size} with "
                "these shares; leave it out, or change the shares"
            )
        groups += [tuple(order[at : at + size]) for at in range(start, start + count * size, size)]
        start += count * size
    return groups + [(index,) for index in order[start:]]


def concatenate_lines(lines: Sequence[str], groups: Sequence[Group]) -> list[str]:
    """The lines of each group, joined by spaces."""
    return [" ".join(lines[index] for index in group) for group in groups]


def concatenate_links(
    links: Sequence[str], groups: Sequence[Group], *, source_lengths: Sequence[int], target_lengths: Sequence[int]
) -> list[str]:
    """The alignments (`0-0 1-2`) of concatenated pairs. Lengths are in the tokens that the links index."""
    joined = []
    for group in groups:
        fields = []
        source_start = target_start = 0
        for index in group:
            of_pair = parse_pharaoh(links[index])
            fields += [f"{source_start + source}-{target_start + target}" for source, target in of_pair]
            source_start += source_lengths[index]
            target_start += target_lengths[index]
        joined.append(" ".join(fields))
    return joined
