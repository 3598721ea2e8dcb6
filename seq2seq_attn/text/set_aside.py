"""Set validation pairs aside from the training pairs, chosen by a hash of the source.

The choice does not depend on the order of the lines. All pairs with a chosen source leave the training split.
"""

from __future__ import annotations

import heapq
import re
from collections.abc import Iterable, Iterator
from hashlib import blake2b

from seq2seq_attn.text.normalize import normalize

ONE_IN = 10
MAX_PAIRS = 1_000
"""Pairs to set aside at most: as many as common validation sets have. More would cost training time."""
_SIZE = 16
_VARIANT = re.compile(r"(?<=\S)\(\d+\)$")
"""the mark of another pronunciation of a word in dictionaries, as in `read(2)`"""


def choose_sources(pairs: Iterable[tuple[str, str]]) -> set[bytes]:
    """The digests of the sources to set aside: a tenth of the distinct sources, at most 1,000; none if there are fewer
    than two. Pairs with a blank side are never chosen."""
    largest_first: list[int] = []
    kept: set[int] = set()
    for source, target in pairs:
        digest = source_digest(source)
        number = int.from_bytes(digest) if digest is not None and normalize(target) else None
        if number is None or number in kept:
            continue
        if len(kept) < ONE_IN * MAX_PAIRS:
            heapq.heappush(largest_first, -number)
            kept.add(number)
        elif number < -largest_first[0]:
            kept.remove(-heapq.heappushpop(largest_first, -number))
            kept.add(number)
    num_chosen = max(len(kept) // ONE_IN, 1) if len(kept) > 1 else 0
    return {number.to_bytes(_SIZE) for number in sorted(kept)[:num_chosen]}


def assign(pairs: Iterable[tuple[str, str]], chosen: set[bytes]) -> Iterator[tuple[str, str, str | None]]:
    """Source, target and split of each pair: `valid` for the first pair of each chosen source, None for its other
    pairs, `train` for the rest."""
    taken: set[bytes] = set()
    for source, target in pairs:
        digest = source_digest(source)
        if digest is None or digest not in chosen:
            yield source, target, "train"
        elif digest in taken or not normalize(target):
            yield source, target, None
        else:
            taken.add(digest)
            yield source, target, "valid"


def source_digest(source: str) -> bytes | None:
    """The digest of a normalized sentence, the same for all variants of a dictionary's word; None if it is blank."""
    text = normalize(source)
    text = text if " " in text else _VARIANT.sub("", text)
    return blake2b(text.encode(), digest_size=_SIZE).digest() if text else None
