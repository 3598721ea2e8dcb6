"""Pairs that a cleaner of parallel text would drop, for `data.filter`."""

import re
from collections.abc import Callable, Iterable, Sequence
from hashlib import blake2b
from itertools import islice
from statistics import median

NOISE = {
    "copies": "source and target are equal",
    "segmented": "text is tokenized or split into subwords (@@)",
    "ratio": "one side is more than three times as long, compared with other pairs",
    "duplicates": "equal to an earlier pair",
}
"""what is wrong with pairs, by the names that `data.filter` takes"""
_SAMPLE_SIZE = 10_000
"""number of pairs that show the usual ratio of lengths"""
_MAX_RATIO = 3.0
_MIN_CHARACTERS = 20
_SEGMENTED = re.compile(r"@@(?:\s|$)|@-@|▁|&(?:apos|quot|#39);|(?<=\w) [.,](?=\s|$)")


def find_noise(
    read_pairs: Callable[[], Iterable[tuple[str, str]]], kinds: Sequence[str]
) -> dict[str, set[int]]:
    """The positions of the noisy pairs of each kind. The first pairs tell the usual ratio of
    lengths. `duplicates` keeps 80 bytes per pair in memory."""
    noise: dict[str, set[int]] = {kind: set() for kind in kinds}
    if not kinds:
        return noise
    ratios = []
    for source, target in islice(read_pairs(), _SAMPLE_SIZE):
        if source and target:
            ratios.append(len(target) / len(source))
    usual_ratio = median(ratios or [1.0])
    seen: set[bytes] = set()
    for number, (source, target) in enumerate(read_pairs()):
        text = f"{source}\n{target}"
        if "copies" in kinds and source == target and source.strip():
            noise["copies"].add(number)
        if "segmented" in kinds and _SEGMENTED.search(text):
            noise["segmented"].add(number)
        if "ratio" in kinds and _is_ratio_outlier(len(source) * usual_ratio, len(target)):
            noise["ratio"].add(number)
        if "duplicates" in kinds:
            digest = blake2b(text.encode(), digest_size=8).digest()
            if digest in seen:
                noise["duplicates"].add(number)
            seen.add(digest)
    return noise


def _is_ratio_outlier(expected: float, length: int) -> bool:
    """Whether the length of a target in characters is far from the expected one. Blank sides and
    short pairs are no outliers."""
    shorter = min(expected, length)
    longer = max(expected, length)
    return longer > _MAX_RATIO * shorter > 0 and longer > _MIN_CHARACTERS
