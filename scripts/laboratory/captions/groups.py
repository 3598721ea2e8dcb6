"""Random groups of captions, to be joined into one training pair each."""

import random
from collections.abc import Sequence

from seq2seq_attn.text.concatenation import Group


def mixed_groups(num_pairs: int, sizes: Sequence[int], *, seed: str) -> list[Group]:
    """Random disjoint groups that cover every index once, equally many of each size. Indices left
    over become groups of one."""
    order = list(range(num_pairs))
    random.Random(f"stitch {seed}").shuffle(order)  # another word would change every draw
    num_each = num_pairs // sum(sizes)
    groups: list[Group] = []
    start = 0
    for size in sorted(sizes):
        groups += [
            tuple(order[at : at + size]) for at in range(start, start + num_each * size, size)
        ]
        start += num_each * size
    return groups + [(index,) for index in order[start:]]
