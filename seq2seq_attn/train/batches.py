"""The batches of an epoch from any position on, built ahead of time in a thread.

What an epoch consists of is known before it begins (`data/buckets.py`), so going on in its middle is a slice, and the
thread that pads batches ahead decides nothing.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from types import MappingProxyType
from typing import TypeVar

from seq2seq_attn.config import BatchConfig
from seq2seq_attn.data.batch import Batch
from seq2seq_attn.data.buckets import bucketed_batches
from seq2seq_attn.data.stitch import stitch_pairs
from seq2seq_attn.data.store import PairStore

ItemT = TypeVar("ItemT")
BuiltT = TypeVar("BuiltT")

NUM_AHEAD = 8
NO_STITCH: Mapping[int, float] = MappingProxyType({})


class EpochBatches:
    """The updates of an epoch: which pairs each of their micro-batches holds."""

    def __init__(
        self, pairs: PairStore, config: BatchConfig, *, seed: int, epoch: int, stitch: Mapping[int, float] = NO_STITCH
    ) -> None:
        """`stitch`: K to the probability that an example is K pairs joined; none: every pair is an example."""
        self._pairs = stitch_pairs(pairs, stitch, seed=seed, epoch=epoch)
        self._accumulate = config.accumulate
        source_lengths, target_lengths = self._pairs.source_lengths, self._pairs.target_lengths
        self._indices = bucketed_batches(
            source_lengths, target_lengths, size=config.size, unit=config.unit, seed=seed, epoch=epoch
        )

    def __len__(self) -> int:
        """Micro-batches."""
        return len(self._indices)

    @property
    def num_updates(self) -> int:
        """Updates; the last may have fewer micro-batches than the others."""
        return -(-len(self._indices) // self._accumulate)

    def updates(self, batches_done: int) -> Generator[list[Batch], None, None]:
        """The micro-batches of each update from this micro-batch on."""
        starts = range(batches_done, len(self._indices), self._accumulate)
        groups = [self._indices[start : start + self._accumulate] for start in starts]
        return built_ahead(self._build, groups)

    def _build(self, group: Sequence[list[int]]) -> list[Batch]:
        return [self._pairs.batch(indices) for indices in group]


def built_ahead(
    build: Callable[[ItemT], BuiltT], items: Iterable[ItemT], *, num_ahead: int = NUM_AHEAD
) -> Generator[BuiltT, None, None]:
    """`build(item)` for each item in order, up to `num_ahead` of them built ahead of time, in one thread."""
    with ThreadPoolExecutor(max_workers=1, thread_name_prefix="batches") as pool:
        pending: deque[Future[BuiltT]] = deque()
        for item in items:
            pending.append(pool.submit(build, item))
            if len(pending) > num_ahead:
                yield pending.popleft().result()
        while pending:
            yield pending.popleft().result()
