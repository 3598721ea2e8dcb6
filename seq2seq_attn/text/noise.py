"""Pairs that a cleaner of parallel text would drop."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from hashlib import blake2b
from itertools import compress, count, islice
from statistics import median

KINDS = {
    "copies": "source and target are equal",
    "swapped": "source and target are exchanged, by their words",
    "mojibake": "text was read in a wrong encoding, such as Ã¼ for ü",
    "segmented": "text is tokenized or split into subwords (@@)",
    "ratio": "one side is more than three times as long, compared with other pairs",
    "duplicates": "equal to an earlier pair",
}
"""by the names that `data.filter` takes: what is wrong with the pairs"""
_WITHOUT_MEMORY = tuple(kind for kind in KINDS if kind != "duplicates")
"""kinds that a pair shows by itself"""
_SAMPLE, _MIN_COUNT, _MIN_WORDS = 10_000, 5, 3
"""pairs that show the words of a side, occurrences of such a word, and how many of them tell that a
pair is swapped"""
_MAX_RATIO, _MIN_CHARACTERS = 3.0, 20
_NEXT = "[\x80-\xbfŒœŠšŸŽžƒˆ˜–-›€™]"
"""bytes 0x80 to 0xBF, which continue a character in UTF-8, as Latin-1 and Windows-1252 show them"""
_MORE = f"(?:[Ä-ß]{_NEXT}|[à-ï]{_NEXT}{{2}})"
_MOJIBAKE = re.compile(  # each begins with a character class, so `re` skips most of a text quickly
    rf"[Â-ï\ufffd](?:(?<=\ufffd)|{_NEXT}(?:(?<=[ÂÃ].)|(?<=â€)|(?<=[Ä-ß].){_MORE}|(?<=[à-ï].){_NEXT}{_MORE}))"
)
_SEGMENTED = re.compile(r"@@(?:\s|$)|@-@|▁|&(?:apos|quot|#39);|(?<=\w) [.,](?=\s|$)")


class Noise:
    """Finds the pairs of a text that are noise of some kinds, and learns from its first pairs what
    is usual. It keeps pairs in memory only to find duplicates, in 80 bytes each."""

    def __init__(
        self, pairs: Iterable[tuple[str, str]], kinds: Sequence[str] = _WITHOUT_MEMORY
    ) -> None:
        self._kinds = kinds
        self._seen: set[bytes] = set()
        sample = list(islice(pairs, _SAMPLE))
        sources, targets = (
            Counter(word for pair in sample for word in _words(pair[side])) for side in (0, 1)
        )
        self._source_words, self._target_words = (
            frozenset(word for word in own if own[word] >= max(_MIN_COUNT, 5 * other[word]))
            for own, other in ((sources, targets), (targets, sources))
        )
        self._ratio = median(
            [len(target) / len(source) for source, target in sample if source and target] or [1.0]
        )

    def find(self, sources: Sequence[str], targets: Sequence[str]) -> dict[str, list[int]]:
        """The indices of the pairs that are noise, by kind."""
        judges = {
            "copies": _is_copy,
            "swapped": self._is_swapped,
            "mojibake": _is_mojibake,
            "segmented": _is_segmented,
            "ratio": self._is_ratio_outlier,
            "duplicates": self._is_duplicate,
        }
        is_noise = {kind: map(judges[kind], sources, targets) for kind in self._kinds}
        return {kind: [*compress(count(), answers)] for kind, answers in is_noise.items()}

    def _is_swapped(self, source: str, target: str) -> bool:
        own, other = self._source_words, self._target_words
        return _is_on_side(source, other, own) and _is_on_side(target, own, other)

    def _is_ratio_outlier(self, source: str, target: str) -> bool:
        length, expected = len(target), self._ratio * len(source)
        if expected <= _MAX_RATIO * length and length <= _MAX_RATIO * expected:
            return False
        return 0 < min(length, expected) and max(length, expected) > _MIN_CHARACTERS

    def _is_duplicate(self, source: str, target: str) -> bool:
        digest = blake2b(f"{source}\n{target}".encode(), digest_size=8).digest()
        is_known = digest in self._seen
        self._seen.add(digest)
        return is_known


def describe_noise(split: str, counts: Mapping[str, int], *, is_dropped: bool) -> list[str]:
    """A line for each kind of noise that a split has."""
    advice = (
        "dropped"
        if is_dropped
        else "kept; data.filter=[{}] drops them"
        if split == "train"
        else "kept"
    )
    return [
        f"{split}: {count:,} {kind} ({KINDS[kind]}), {advice.format(kind)}"
        for kind, count in counts.items()
        if count
    ]


def _is_copy(source: str, target: str) -> bool:
    return source == target and bool(source.strip())


def _is_mojibake(source: str, target: str) -> bool:
    text = f"{source}\n{target}"
    return not text.isascii() and _MOJIBAKE.search(text) is not None


def _is_segmented(source: str, target: str) -> bool:
    text = f"{source}\n{target}"
    # the expression takes ten times as long as these searches
    may_be = " ." in text or " ," in text or "@" in text or "&" in text or "▁" in text
    return may_be and _SEGMENTED.search(text) is not None


def _is_on_side(line: str, own: frozenset[str], other: frozenset[str]) -> bool:
    """Whether a line has at least `_MIN_WORDS` more of a side's own words than of the other
    side's."""
    words = _words(line)
    return (
        not own.isdisjoint(words)
        and sum((word in own) - (word in other) for word in words) >= _MIN_WORDS
    )


def _words(line: str) -> Iterable[str]:
    """The words of a line, or its characters if it has no spaces."""
    words = line.lower().split()
    return words if len(words) > 1 else line
