"""Concatenate sentence pairs (`--concatenate K`): K sources become one source, and their targets
become one target.

The concatenated sources are longer than the sources of the corpus, but have the same words, and
their number of sentences is known.
"""

import random
from collections.abc import Sequence

from seq2seq_attn.text.links import parse_pharaoh

Group = tuple[int, ...]
"""indices of the pairs to concatenate, in their order"""


def equal_groups(num_pairs: int, k: int, *, seed: int) -> list[Group]:
    """Return random disjoint groups of `k` indices below `num_pairs`. If `k` does not divide
    `num_pairs`, the remaining indices are dropped."""
    order = list(range(num_pairs))
    # Recorded results depend on the groups, so the word in the seed must stay as it is.
    random.Random(f"stitch {k} {seed}").shuffle(order)
    return [tuple(order[start : start + k]) for start in range(0, num_pairs - k + 1, k)]


def concatenate_lines(lines: Sequence[str], groups: Sequence[Group]) -> list[str]:
    """Join the lines of each group by spaces."""
    return [" ".join(map(lines.__getitem__, group)) for group in groups]


def concatenate_links(
    links: Sequence[str],
    groups: Sequence[Group],
    *,
    source_lengths: Sequence[int],
    target_lengths: Sequence[int],
) -> list[str]:
    """Return the alignment links, such as `0-0 1-2`, of each concatenated pair.

    Args:
        links: the alignment links of each pair.
        groups: the pairs that are concatenated.
        source_lengths: the number of source tokens of each pair, by which links are shifted.
        target_lengths: the number of target tokens of each pair.
    """
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
