"""Find noisy sentence pairs for `data.filter`: pairs that a cleaner of parallel text would drop."""

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
"""the kinds of noise that `data.filter` names, and their meaning"""
_SAMPLE_SIZE = 10_000
"""number of pairs from which the usual ratio of lengths is computed"""
_MAX_RATIO = 3.0
_MIN_CHARACTERS = 20
_SEGMENTED = re.compile(r"@@(?:\s|$)|@-@|▁|&(?:apos|quot|#39);|(?<=\w) [.,](?=\s|$)")


def find_noise(
    read_pairs: Callable[[], Iterable[tuple[str, str]]], kinds: Sequence[str]
) -> dict[str, set[int]]:
    """Return the positions of noisy pairs for each kind of noise.

    The usual ratio of lengths is the median of target characters per source character in the first
    `_SAMPLE_SIZE` pairs. Finding `duplicates` takes 80 bytes of memory per pair.
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
        has_noise = {
            "copies": source == target and source.strip(),
            "segmented": _SEGMENTED.search(text),
            "ratio": _is_ratio_outlier(len(source) * usual_ratio, len(target)),
            "duplicates": digest in seen,
        }
        for kind in kinds:
            if has_noise[kind]:
                noise[kind].add(position)
        if "duplicates" in kinds:
            seen.add(digest)
    return noise


def _is_ratio_outlier(expected: float, length: int) -> bool:
    """Return whether the length of a target, in characters, is far from its expected length. Short
    pairs are no outliers, and neither are pairs of which a side is blank."""
    shorter = min(expected, length)
    longer = max(expected, length)
    if shorter == 0 or longer <= _MIN_CHARACTERS:
        return False
    return longer > _MAX_RATIO * shorter
