"""Pairs that a cleaner of parallel text would drop."""

import re
from collections import Counter
from collections.abc import Collection, Iterable
from hashlib import blake2b
from itertools import islice
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
_SAMPLE, _MIN_COUNT, _MIN_WORDS = 10_000, 5, 3
"""pairs that show the words of a side, occurrences of such a word, and how many of them tell that a pair is swapped"""
_MAX_RATIO, _MIN_CHARACTERS = 3.0, 20
_NEXT = "[\x80-\xbfŒœŠšŸŽžƒˆ˜–-›€™]"
"""bytes 0x80 to 0xBF, which continue a character in UTF-8, as Latin-1 and Windows-1252 show them"""
_MORE = f"(?:[Ä-ß]{_NEXT}|[à-ï]{_NEXT}{{2}})"
_MOJIBAKE = re.compile(  # beginning with a set of characters, which `re` finds fast
    rf"[Â-ï\ufffd](?:(?<=\ufffd)|(?<=[ÂÃ]){_NEXT}|(?<=â)€|(?<=[Ä-ß]){_NEXT}{_MORE}|(?<=[à-ï]){_NEXT}{{2}}{_MORE})"
)
_SEGMENTED = re.compile(r"@@(?:\s|$)|@-@|▁|&(?:apos|quot|#39);|(?<=\w) [.,](?=\s|$)")
_MAYBE_SEGMENTED = ("@", "▁", "&", " .", " ,")
"""which are found faster"""


class Noise:
    """Counts the pairs of a text that are noise, judged by its first pairs, and tells which to keep. Only if it drops
    duplicates, it counts them, and holds 80 bytes per pair."""

    def __init__(self, pairs: Iterable[tuple[str, str]], drop: Collection[str] = ()) -> None:
        self.counts = Counter(dict.fromkeys(KINDS, 0))
        self._drop = frozenset(drop)
        self._seen: set[bytes] = set()
        sample = list(islice(pairs, _SAMPLE))
        sources, targets = (Counter(word for pair in sample for word in _words(pair[side])) for side in (0, 1))
        self._source_words, self._target_words = (
            frozenset(word for word in own if own[word] >= max(_MIN_COUNT, 5 * other[word]))
            for own, other in ((sources, targets), (targets, sources))
        )
        self._ratio = median([len(target) / len(source) for source, target in sample if source and target] or [1.0])

    def keeps(self, source: str, target: str) -> bool:
        """Whether a pair is kept; it is counted."""
        kinds = self._kinds(source, target)
        if kinds:
            self.counts.update(kinds)
        return self._drop.isdisjoint(kinds)

    def _kinds(self, source: str, target: str) -> list[str]:
        kinds = []
        pair = f"{source}\n{target}"
        if source == target and source.strip():
            kinds.append("copies")
        words = self._source_words, self._target_words
        if _is_on_side(source, words[1], words[0]) and _is_on_side(target, *words):
            kinds.append("swapped")
        if not pair.isascii() and _MOJIBAKE.search(pair):
            kinds.append("mojibake")
        if any(map(pair.__contains__, _MAYBE_SEGMENTED)) and _SEGMENTED.search(pair):
            kinds.append("segmented")
        length, expected = len(target), self._ratio * len(source)
        if source and target and max(length, expected) > max(_MIN_CHARACTERS, _MAX_RATIO * min(length, expected)):
            kinds.append("ratio")
        if "duplicates" in self._drop:
            digest = blake2b(pair.encode(), digest_size=8).digest()
            kinds += ["duplicates"] if digest in self._seen else []
            self._seen.add(digest)
        return kinds

    def notes(self, split: str) -> list[str]:
        """A line for each kind that occurs."""
        advice = "kept; data.filter=[{}] drops them" if split == "train" else "kept"
        return [
            f"{split}: {count:,} {kind} ({KINDS[kind]}), {'dropped' if kind in self._drop else advice.format(kind)}"
            for kind, count in self.counts.items()
            if count
        ]


def _is_on_side(line: str, own: frozenset[str], other: frozenset[str]) -> bool:
    """Whether a line has at least `_MIN_WORDS` more of a side's own words than of the other side's."""
    words = _words(line)
    return not own.isdisjoint(words) and sum((word in own) - (word in other) for word in words) >= _MIN_WORDS


def _words(line: str) -> Iterable[str]:
    """The words of a line, or its characters if it has no spaces."""
    words = line.lower().split()
    return words if len(words) > 1 else line
