"""Sentence pairs joined end to end: lengths that a corpus does not have, with a known number of sentences in each.

Joined inputs make the length of a text a dial without changing its words: K pairs become one, their sources side by
side and their targets too.
"""

from __future__ import annotations

import math
import random
from collections.abc import Mapping, Sequence

Group = tuple[int, ...]
"""positions of the pairs that are joined, in order"""


def stitch_groups(num_pairs: int, k: int, *, seed: int) -> list[Group]:
    """Disjoint groups of `k` positions out of `num_pairs`, drawn with this seed; fewer than `k` left over are dropped.

    With `k` 1, every position by itself, in order.

    Raises:
        ValueError: `k` is not positive.
    """
    if k < 1:
        raise ValueError(f"{k} pairs joined: expected at least 1")
    order = list(range(num_pairs))
    if k > 1:
        random.Random(f"stitch {k} {seed}").shuffle(order)
    return [tuple(order[start : start + k]) for start in range(0, num_pairs - k + 1, k)]


def mixed_groups(num_pairs: int, probabilities: Mapping[int, float], *, seed: str) -> list[Group]:
    """Disjoint groups that hold every position once, of sizes in these proportions.

    How many groups there are of each size depends on `num_pairs` alone, not on the seed, so that every epoch has the
    same number of examples; what does not fill a group stays single.

    Args:
        num_pairs: positions to distribute.
        probabilities: size of a group to the probability that an example is such a group; they need not sum to one.
        seed: decides which positions come together.

    Raises:
        ValueError: a size below 1, a negative probability, or none above 0.
    """
    total = sum(probabilities.values())
    if min(probabilities, default=0) < 1 or min(probabilities.values(), default=-1.0) < 0.0 or total <= 0.0:
        raise ValueError(f"probabilities {dict(probabilities)}: expected sizes from 1 on with probabilities above 0")
    mean_size = sum(size * probability for size, probability in probabilities.items()) / total
    num_groups = num_pairs / mean_size
    order = list(range(num_pairs))
    random.Random(f"stitch {seed}").shuffle(order)
    groups: list[Group] = []
    start = 0
    for size, probability in sorted(probabilities.items()):
        count = math.floor(num_groups * probability / total)
        groups += [tuple(order[at : at + size]) for at in range(start, start + count * size, size)]
        start += count * size
    return groups + [(index,) for index in order[start:]]


def stitch_lines(lines: Sequence[str], groups: Sequence[Group]) -> list[str]:
    """The lines of each group joined by a blank."""
    return [" ".join(lines[index] for index in group) for group in groups]


def stitch_links(
    links: Sequence[str], groups: Sequence[Group], *, source_lengths: Sequence[int], target_lengths: Sequence[int]
) -> list[str]:
    """Alignments (`0-0 1-2`) of joined pairs; the lengths are in the tokens that links are numbered in."""
    joined = []
    for group in groups:
        fields = []
        source_start = target_start = 0
        for index in group:
            for field in links[index].split():
                source, _, target = field.partition("-")
                fields.append(f"{source_start + int(source)}-{target_start + int(target)}")
            source_start += source_lengths[index]
            target_start += target_lengths[index]
        joined.append(" ".join(fields))
    return joined
