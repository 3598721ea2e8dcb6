"""Concatenate sentence pairs (`--concatenate K`): K sources become one, and so do their targets.

This gives inputs longer than any in the corpus, of the same words and with a known number of
sentences.
"""

import random
from collections.abc import Sequence

from seq2seq_attn.text.links import parse_pharaoh

Group = tuple[int, ...]
"""indices of the pairs to concatenate, in order"""


def equal_groups(num_pairs: int, k: int, *, seed: int) -> list[Group]:
    """Random disjoint groups of `k` out of `num_pairs` indices. A remainder of fewer than `k` is
    dropped."""
    order = list(range(num_pairs))
    random.Random(f"stitch {k} {seed}").shuffle(order)  # another word would change every draw
    return [tuple(order[start : start + k]) for start in range(0, num_pairs - k + 1, k)]


def concatenate_lines(lines: Sequence[str], groups: Sequence[Group]) -> list[str]:
    """The lines of each group, joined by spaces."""
    return [" ".join(lines[index] for index in group) for group in groups]


def concatenate_links(
    links: Sequence[str],
    groups: Sequence[Group],
    *,
    source_lengths: Sequence[int],
    target_lengths: Sequence[int],
) -> list[str]:
    """The alignments (`0-0 1-2`) of concatenated pairs. Lengths are in the tokens that the links
    index."""
    joined = []
    for group in groups:
        fields = []
        source_start = target_start = 0
        for index in group:
            pair_links = parse_pharaoh(links[index])
            fields += [
                f"{source_start + source}-{target_start + target}" for source, target in pair_links
            ]
            source_start += source_lengths[index]
            target_start += target_lengths[index]
        joined.append(" ".join(fields))
    return joined
