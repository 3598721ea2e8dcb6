"""Count duplicate pairs within a split and overlap with the training split, by 128-bit digests (BLAKE2b).

The digests are kept on disk, 32 bytes per pair, and read in blocks, so memory does not grow with the training pairs. A
collision would give a wrong count; for 10^9 pairs its probability is 2^-69.
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
"""The digest of a blank source, which counts as no overlap."""
_BLOCK_ROWS = 1 << 15
_ROWS_TO_SORT = 1 << 18
"""About this many digests, 4 MiB, are sorted at once."""


def digest_pairs(sources: Sequence[bytes], targets: Sequence[bytes]) -> Digests:
    """[pairs, 4]: two 64-bit words of the source's digest, then two of the pair's.

    Args:
        sources: the lines in UTF-8, without line ends.
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
    """Number of pairs equal to an earlier one.

    Args:
        path: a file with the rows of `digest_pairs`.
    """
    num_parts = max(1, _num_rows(path) // _ROWS_TO_SORT)
    return sum(_num_equal(_part_of_pairs(path, part, num_parts)) for part in range(num_parts))


def count_overlap(path: Path, train_path: Path) -> tuple[int, int]:
    """The number of a split's pairs that are also training pairs, and the number whose source is a training source.
    Pairs with a blank source are not counted.

    Args:
        path: rows of `digest_pairs` of a split; 64 bytes per pair are held in memory.
        train_path: those of the training split.
    """
    rows = np.concatenate([np.empty((0, 4), dtype=np.uint64), *_blocks(path)])
    rows = rows[(rows[:, :2] != 0).any(axis=1)]
    is_known_source, is_known_pair = (_are_in(rows[:, side], train_path, side) for side in (slice(0, 2), slice(2, 4)))
    return int(is_known_pair.sum()), int(is_known_source.sum())


def _are_in(digests: Digests, path: Path, side: slice) -> npt.NDArray[np.bool_]:
    """[len(digests)], whether each digest occurs in these columns of the file."""
    known: set[bytes] = set()
    first_words = np.unique(digests[:, 0])
    for block in _blocks(path):
        # numpy compares the first words; only the few matches are compared in full
        candidates = block[np.isin(block[:, side.start], first_words), side]
        known.update(row.tobytes() for row in candidates)
    return np.array([digest.tobytes() in known for digest in digests], dtype=np.bool_)


def _part_of_pairs(path: Path, part: int, num_parts: int) -> Digests:
    """[pairs, 2], the digests of pairs that fall into one part. Equal digests fall into the same part."""
    return np.concatenate([block[block[:, 2] % np.uint64(num_parts) == part, 2:] for block in _blocks(path)])


def _num_equal(digests: Digests) -> int:
    ordered = digests[np.lexsort((digests[:, 0], digests[:, 1]))]
    return int((ordered[1:] == ordered[:-1]).all(axis=1).sum())


def _blocks(path: Path) -> Iterator[Digests]:
    """The file's rows, in at least one block. The file is read, not mapped: mapped pages would count as memory."""
    with path.open("rb") as stream:
        while True:
            rows = np.fromfile(stream, dtype=np.uint64, count=4 * _BLOCK_ROWS).reshape(-1, 4)
            yield rows
            if len(rows) < _BLOCK_ROWS:
                return


def _num_rows(path: Path) -> int:
    return path.stat().st_size // (2 * _SIZE)
