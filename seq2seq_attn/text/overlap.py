"""Which pairs occur twice: within a split, and in the training split too. Counted on 128-bit digests (BLAKE2b), which
lie on disk, 32 bytes a pair, and are read bit by bit: memory does not grow with the corpus.

Two different texts of the same digest would give a wrong count; among 10^9 pairs that has probability 2^-69.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from hashlib import blake2b
from pathlib import Path

import numpy as np
import numpy.typing as npt

Digests = npt.NDArray[np.uint64]

_SIZE = 16
_BLANK = bytes(_SIZE)
"""Instead of the digest of a blank source: it is equal to no other."""
_ROWS_AT_A_TIME = 1 << 15
_ROWS_TO_SORT = 1 << 18
"""About how many digests are sorted at once: 4 MiB."""


def digest_pairs(sources: Sequence[bytes], targets: Sequence[bytes]) -> Digests:
    """[pairs, 4]: two words of the source's digest, then two of the pair's.

    Args:
        sources: the lines' UTF-8, with no line end in it.
        targets: likewise.
    """
    digests = []
    for source, target in zip(sources, targets, strict=True):
        state = blake2b(source, digest_size=_SIZE)
        digests.append(state.digest() if source.decode("utf-8").strip() else _BLANK)
        state.update(b"\n")  # the pair ("ab", "c") is not the pair ("a", "bc")
        state.update(target)
        digests.append(state.digest())
    return np.frombuffer(b"".join(digests), dtype=np.uint64).reshape(-1, 4)


def count_duplicates(path: Path) -> int:
    """Pairs that are equal to an earlier one.

    Args:
        path: rows of `digest_pairs`, one after the other.
    """
    num_parts = max(1, _num_rows(path) // _ROWS_TO_SORT)
    return sum(_num_equal(_part_of_pairs(path, part, num_parts)) for part in range(num_parts))


def count_overlap(path: Path, train_path: Path) -> tuple[int, int]:
    """Pairs of a split that are in the training split: (both sides, source side, which is not blank).

    Args:
        path: rows of `digest_pairs` of a split; 64 bytes a pair are held in memory.
        train_path: those of the training split.
    """
    rows = np.concatenate([np.empty((0, 4), dtype=np.uint64), *_blocks(path)])
    rows = rows[(rows[:, :2] != 0).any(axis=1)]
    is_known_source, is_known_pair = (_are_in(rows[:, side], train_path, side) for side in (slice(0, 2), slice(2, 4)))
    return int(is_known_pair.sum()), int(is_known_source.sum())


def _are_in(digests: Digests, path: Path, side: slice) -> npt.NDArray[np.bool_]:
    """[len(digests)], whether each is among the file's, of this side."""
    found: set[bytes] = set()
    first_words = np.unique(digests[:, 0])
    for block in _blocks(path):
        # the first words are compared by numpy, the few that are left in full
        candidates = block[np.isin(block[:, side.start], first_words), side]
        found.update(row.tobytes() for row in candidates)
    return np.array([digest.tobytes() in found for digest in digests], dtype=np.bool_)


def _part_of_pairs(path: Path, part: int, num_parts: int) -> Digests:
    """[pairs, 2], those of all pairs' digests that belong to a part; equal ones belong to the same."""
    return np.concatenate([block[block[:, 2] % np.uint64(num_parts) == part, 2:] for block in _blocks(path)])


def _num_equal(digests: Digests) -> int:
    ordered = digests[np.lexsort((digests[:, 0], digests[:, 1]))]
    return int((ordered[1:] == ordered[:-1]).all(axis=1).sum())


def _blocks(path: Path) -> Iterator[Digests]:
    """At least one; read, not mapped: mapped pages would count as memory."""
    with path.open("rb") as stream:
        while True:
            rows = np.fromfile(stream, dtype=np.uint64, count=4 * _ROWS_AT_A_TIME).reshape(-1, 4)
            yield rows
            if len(rows) < _ROWS_AT_A_TIME:
                return


def _num_rows(path: Path) -> int:
    return path.stat().st_size // (2 * _SIZE)
