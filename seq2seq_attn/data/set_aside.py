"""Which pairs of a training text are set aside for validation. They are chosen by a hash of the
source, so that the choice does not depend on the order of the lines. All pairs with a chosen source
leave the training split."""

import heapq
import re
from collections.abc import Container, Iterable, Iterator
from hashlib import blake2b

from seq2seq_attn.text.normalize import normalize

ONE_IN = 10
MAX_PAIRS = 1_000
"""The largest number of pairs to set aside: common validation sets have as many. More would cost
training time."""
_VARIANT = re.compile(r"(?<=\S)\(\d+\)$")
"""the mark of another pronunciation of a word in dictionaries, as in `read(2)`"""


def choose_sources(pairs: Iterable[tuple[str, str]], side: int = 0) -> set[bytes]:
    """The digests of the sources (`side` 1: targets) to set aside: a tenth of the distinct ones, at
    most 1,000; none if there are fewer than two. Pairs with a blank side are never chosen."""
    max_kept = ONE_IN * MAX_PAIRS
    smallest: set[bytes] = set()
    for pair in pairs:
        digest = source_digest(pair[side])
        if digest is None or not normalize(pair[1]):
            continue
        smallest.add(digest)
        if len(smallest) > 2 * max_kept:  # so that memory does not grow with the text
            smallest = set(heapq.nsmallest(max_kept, smallest))
    num_chosen = min(max(len(smallest) // ONE_IN, 1), MAX_PAIRS)
    return set(sorted(smallest)[:num_chosen]) if len(smallest) > 1 else set()


def assign(
    pairs: Iterable[tuple[str, str]],
    chosen: Container[bytes],
    dropped: Container[int] = (),
    side: int = 0,
) -> Iterator[tuple[tuple[str, str], str | None]]:
    """Assign each training pair to a split. The first pair with a chosen source (`side` 1: target)
    goes to `valid`, and its other pairs to no split (None), like those numbered in `dropped` (from
    0). All the rest goes to `train`."""
    taken: set[bytes] = set()
    for number, pair in enumerate(pairs):
        digest = source_digest(pair[side]) if chosen else None
        if number in dropped:
            yield pair, None
        elif digest is None or digest not in chosen:
            yield pair, "train"
        elif digest in taken or not normalize(pair[1]):
            yield pair, None
        else:
            taken.add(digest)
            yield pair, "valid"


def source_digest(source: str) -> bytes | None:
    """The digest of a normalized sentence, the same for all variants of a dictionary's word; None
    if it is blank."""
    text = normalize(source)
    if " " not in text:
        text = _VARIANT.sub("", text)
    return blake2b(text.encode(), digest_size=16).digest() if text else None
