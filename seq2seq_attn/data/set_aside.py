"""Set pairs of a training text aside for validation.

The pairs are chosen by a hash of the source sentence, so that the choice does not depend on the
order of the lines. All pairs with a chosen source leave the training split. A language model has no
source, so its pairs are chosen by a hash of the target.
"""

import heapq
import re
from collections.abc import Container, Iterable, Iterator
from hashlib import blake2b

from seq2seq_attn.text.normalize import normalize

ONE_IN = 10
"""One in this many distinct sentences is set aside."""
MAX_PAIRS = 1_000
"""The largest number of pairs to set aside, a common size for a validation set. A larger set would
cost training time."""
_VARIANT = re.compile(r"(?<=\S)\(\d+\)$")
"""the mark of an alternative pronunciation in pronunciation dictionaries, as in `read(2)`"""


def choose_sources(pairs: Iterable[tuple[str, str]], side: int = 0) -> set[bytes]:
    """Return the digests of the sentences to set aside.

    A tenth of the distinct sentences is chosen, at least 1 and at most 1,000. The result is empty
    if there are fewer than two distinct sentences. A pair with a blank target, or a blank sentence
    at index `side`, is never chosen.

    Args:
        pairs: source and target of each training pair.
        side: the index in a pair of the sentence to hash: 0 for the source, 1 for the target.
    """
    max_kept = ONE_IN * MAX_PAIRS
    smallest = set()
    for pair in pairs:
        digest = source_digest(pair[side])
        # A pair with a blank target is useless for validation, whichever side is hashed.
        if digest is None or not normalize(pair[1]):
            continue
        smallest.add(digest)
        if len(smallest) > 2 * max_kept:  # bounds the memory
            smallest = set(heapq.nsmallest(max_kept, smallest))
    num_chosen = min(max(len(smallest) // ONE_IN, 1), MAX_PAIRS)
    return set(sorted(smallest)[:num_chosen]) if len(smallest) > 1 else set()


def assign(
    pairs: Iterable[tuple[str, str]],
    chosen: Container[bytes],
    dropped: Container[int] = (),
    side: int = 0,
) -> Iterator[tuple[tuple[str, str], str | None]]:
    """Yield each training pair with the name of its split, or None if the pair is dropped.

    The first pair with a chosen sentence and a target that is not blank goes to `valid`. Other
    pairs with a chosen sentence are dropped, so that training never sees the sentence. All
    remaining pairs go to `train`.

    Args:
        pairs: source and target of each training pair.
        chosen: the result of `choose_sources`.
        dropped: indices of the pairs to drop.
        side: the index in a pair of the sentence to hash: 0 for the source, 1 for the target.
    """
    taken = set()
    for number, pair in enumerate(pairs):
        digest = source_digest(pair[side]) if chosen else None
        if number in dropped:
            yield pair, None
        elif digest is None or digest not in chosen:
            yield pair, "train"
        elif digest in taken or not normalize(pair[1]):  # a blank target
            yield pair, None
        else:
            taken.add(digest)
            yield pair, "valid"


def source_digest(source: str) -> bytes | None:
    """Return the digest of a normalized sentence, or None if the sentence is blank.

    All pronunciations of a word in a dictionary (`read`, `read(2)`) have the same digest, so that
    they are set aside together.
    """
    text = normalize(source)
    if " " not in text:
        text = _VARIANT.sub("", text)
    return blake2b(text.encode(), digest_size=16).digest() if text else None
