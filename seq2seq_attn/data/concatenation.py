"""Concatenate training pairs, chosen at random anew in each epoch (`data.concatenate`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain

import numpy as np
import numpy.typing as npt

from seq2seq_attn.data.batch import Batch
from seq2seq_attn.data.store import PairStore
from seq2seq_attn.text.concatenation import Group, mixed_groups


class ConcatenatedPairs:
    """A split whose examples are groups of pairs. The sources of a group are concatenated into one source, its targets
    into one target."""

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
        """The groups at these indices, padded. `indices_B` holds the first pair of each group."""
        return self._pairs.concatenated_batch([self._groups[index] for index in indices])

    def members(self, indices: Sequence[int]) -> list[int]:
        """The pairs of the groups at these indices."""
        return [pair for index in indices for pair in self._groups[index]]

    def _summed(self, lengths: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        flat = np.fromiter(chain.from_iterable(self._groups), dtype=np.int64)
        sizes = np.fromiter(map(len, self._groups), dtype=np.int64, count=len(self._groups))
        return np.add.reduceat(lengths[flat], np.concatenate([[0], np.cumsum(sizes)[:-1]]))


def concatenate_pairs(
    pairs: PairStore, probabilities: Mapping[int, float], *, seed: int, epoch: int
) -> PairStore | ConcatenatedPairs:
    """The examples of an epoch: groups of these sizes, or the pairs themselves if there are no probabilities."""
    if not any(probabilities.values()):
        return pairs
    return ConcatenatedPairs(pairs, mixed_groups(len(pairs), probabilities, seed=f"{seed}/{epoch}"))
