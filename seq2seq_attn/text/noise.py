"""Pairs that a cleaner of parallel text would drop, for `data.filter`."""

import re
from collections.abc import Iterable, Iterator, Sequence
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
_SEGMENTED_HINTS = (" .", " ,", "@", "&", "▁")
"""every segmented text holds one of them; the expression takes ten times as long to search"""


def find_noise(
    sample: Iterable[tuple[str, str]], pairs: Iterable[tuple[str, str]], kinds: Sequence[str]
) -> Iterator[list[str]]:
    """The kinds of noise that each pair is, a subset of `kinds`. The first pairs of `sample` tell
    the usual ratio of lengths. `duplicates` keeps 80 bytes per pair in memory."""
    ratios = [
        len(target) / len(source)
        for source, target in islice(sample, _SAMPLE_SIZE)
        if source and target
    ]
    usual_ratio = median(ratios or [1.0])
    seen: set[bytes] = set()
    for source, target in pairs:
        noise = []
        if "copies" in kinds and source == target and source.strip():
            noise.append("copies")
        if "segmented" in kinds and is_segmented(f"{source}\n{target}"):
            noise.append("segmented")
        if "ratio" in kinds and is_ratio_outlier(len(source) * usual_ratio, len(target)):
            noise.append("ratio")
        if "duplicates" in kinds:
            digest = blake2b(f"{source}\n{target}".encode(), digest_size=8).digest()
            if digest in seen:
                noise.append("duplicates")
            seen.add(digest)
        yield noise


def is_segmented(text: str) -> bool:
    """Whether a text is tokenized, or split into subwords."""
    may_be = any(hint in text for hint in _SEGMENTED_HINTS)
    return may_be and _SEGMENTED.search(text) is not None


def is_ratio_outlier(expected: float, length: int) -> bool:
    """Whether the length of a target in characters is far from the expected one. Blank sides and
    short pairs are no outliers."""
    shorter = min(expected, length)
    longer = max(expected, length)
    return longer > _MAX_RATIO * shorter > 0 and longer > _MIN_CHARACTERS
