"""Find noisy sentence pairs, such as copies and duplicates, which `data.filter` drops."""

import re
from collections.abc import Callable, Iterable, Sequence
from hashlib import blake2b
from itertools import islice
from statistics import median

NOISE = {
    "copies": "source and target are equal",
    "segmented": "text is tokenized or split into subwords (@@)",
    "ratio": "one side is more than three times as long as in usual pairs",
    "duplicates": "equal to an earlier pair",
}
"""the kinds of noise that `data.filter` may name, with their meaning"""
_SAMPLE_SIZE = 10_000
"""number of pairs from which the usual ratio of lengths is computed"""
_MAX_RATIO = 3.0
_MIN_CHARACTERS = 20
"""number of characters up to which a text is too short for the ratio to mean anything"""
_SEGMENTED = re.compile(
    r"""(?x)
    @@(?:\s|$)  # subwords of BPE: hou@@ se
    | ▁  # subwords of SentencePiece: ▁the
    | @-@ | &(?:apos|quot|\#39);  # tokens of Moses: two @-@ year, it &apos;s
    | (?<=\w)[ ][.,](?=\s|$)  # punctuation marks between spaces: here .
    """
)


def find_noise(
    read_pairs: Callable[[], Iterable[tuple[str, str]]], kinds: Sequence[str]
) -> dict[str, set[int]]:
    """Return the positions of noisy pairs for each kind of noise.

    The usual ratio of lengths is the median number of target characters per source character in the
    first `_SAMPLE_SIZE` pairs. Finding `duplicates` takes 80 bytes of memory per pair.

    Args:
        read_pairs: a function that reads the pairs from the first to the last; called twice.
        kinds: keys of `NOISE`.
    """
    noise: dict[str, set[int]] = {kind: set() for kind in kinds}
    if not kinds:
        return noise
    ratios = []
    for source, target in islice(read_pairs(), _SAMPLE_SIZE):
        if source and target:
            ratios.append(len(target) / len(source))
    usual_ratio = median(ratios or [1.0])
    seen = set()
    for position, (source, target) in enumerate(read_pairs()):
        text = f"{source}\n{target}"
        digest = blake2b(text.encode(), digest_size=8).digest()
        is_noisy = {
            "copies": source == target and source.strip(),  # blank pairs are no copies
            "segmented": _SEGMENTED.search(text),
            "ratio": _is_ratio_outlier(len(source) * usual_ratio, len(target)),
            "duplicates": digest in seen,
        }
        for kind in kinds:
            if is_noisy[kind]:
                noise[kind].add(position)
        if "duplicates" in kinds:
            seen.add(digest)
    return noise


def _is_ratio_outlier(expected: float, length: int) -> bool:
    """Return whether the length of a target, in characters, is far from the expected length. A pair
    with two short sides or an empty side is no outlier."""
    shorter = min(expected, length)
    longer = max(expected, length)
    if shorter == 0 or longer <= _MIN_CHARACTERS:
        return False
    return longer > _MAX_RATIO * shorter
