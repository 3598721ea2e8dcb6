"""Training pairs joined end to end, other ones in every epoch (`text/stitch.py`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain

import numpy as np
import numpy.typing as npt

from seq2seq_attn.data.batch import Batch
from seq2seq_attn.data.store import PairStore
from seq2seq_attn.text.concatenation import Group, mixed_groups


class StitchedPairs:
    """Groups of a split's pairs, each read as one pair: the ids of its sources side by side, and of its targets."""

    def __init__(self, pairs: PairStore, groups: Sequence[Group]) -> None:
        self._pairs = pairs
        self._groups = groups

    def __len__(self) -> int:
        return len(self._groups)

    @property
    def source_lengths(self) -> npt.NDArray[np.int64]:
        """[groups], tokens."""
        return self._summed(self._pairs.source_lengths)

    @property
    def target_lengths(self) -> npt.NDArray[np.int64]:
        """[groups], tokens."""
        return self._summed(self._pairs.target_lengths)

    def batch(self, indices: Sequence[int]) -> Batch:
        """The groups at these positions, padded; `indices_B` names the first pair of each."""
        return self._pairs.joined_batch([self._groups[index] for index in indices])

    def _summed(self, lengths: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        flat = np.fromiter(chain.from_iterable(self._groups), dtype=np.int64)
        sizes = np.fromiter(map(len, self._groups), dtype=np.int64, count=len(self._groups))
        return np.add.reduceat(lengths[flat], np.concatenate([[0], np.cumsum(sizes)[:-1]]))


def stitch_pairs(
    pairs: PairStore, probabilities: Mapping[int, float], *, seed: int, epoch: int
) -> PairStore | StitchedPairs:
    """The examples of an epoch: the pairs themselves if no probability is above 0, else groups of these sizes."""
    if not any(probabilities.values()):
        return pairs
    return StitchedPairs(pairs, mixed_groups(len(pairs), probabilities, seed=f"{seed}/{epoch}"))
