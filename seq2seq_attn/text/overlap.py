"""Count duplicate pairs within a split and overlap with the training split, by 64-bit digests (BLAKE2b).

The digests wait on disk; a count reads 16 bytes per pair. A collision would give a wrong count; for 10^7 pairs its
probability is 3e-6.
"""

from collections.abc import Sequence
from hashlib import blake2b
from pathlib import Path

import numpy as np
import numpy.typing as npt

Digests = npt.NDArray[np.uint64]

_SIZE = 8
_BLANK = bytes(_SIZE)
"""The digest of a blank source, which counts as no overlap."""


def digest_pairs(sources: Sequence[bytes], targets: Sequence[bytes]) -> Digests:
    """[pairs, 2]: the source's digest, then the pair's.

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
    return np.frombuffer(b"".join(digests), dtype=np.uint64).reshape(-1, 2)


def count_duplicates(path: Path) -> int:
    """Number of pairs equal to an earlier one, in a file with the rows of `digest_pairs`."""
    pairs = _read(path)[:, 1]
    return len(pairs) - len(np.unique(pairs))


def count_overlap(path: Path, train_path: Path) -> tuple[int, int]:
    """Count the pairs of a split that are also training pairs, and those whose source is a training source. Both files
    have the rows of `digest_pairs`. Pairs with a blank source are not counted."""
    rows, train = _read(path), _read(train_path)
    rows = rows[rows[:, 0] != 0]
    is_known_source, is_known_pair = (np.isin(rows[:, column], train[:, column]) for column in (0, 1))
    return int(is_known_pair.sum()), int(is_known_source.sum())


def _read(path: Path) -> Digests:
    return np.fromfile(path, dtype=np.uint64).reshape(-1, 2)
