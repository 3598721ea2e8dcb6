"""Build the batches of an epoch, or this rank's share of the batches, from any update on. A thread
builds batches ahead of time.

The sentence pairs of every batch are known before the epoch starts (`data/buckets.py`). So a resume
in the middle of an epoch takes the rest of the list of batches, and the thread only pads.
"""

from collections import deque
from collections.abc import Callable, Generator, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import NamedTuple, TypeVar

from seq2seq_attn.config import BatchConfig
from seq2seq_attn.data.batch import Batch
from seq2seq_attn.data.buckets import bucketed_batches
from seq2seq_attn.data.store import PairStore
from seq2seq_attn.train.distributed import Group

ItemT = TypeVar("ItemT")
BuiltT = TypeVar("BuiltT")


class UpdateBatches(NamedTuple):
    """The batches of one update."""

    batches: list[Batch]
    """this rank's share of the rows of each micro-batch; a micro-batch without rows for this rank
    is left out"""
    indices: list[list[int]]
    """indices of the training pairs of each micro-batch, over all ranks"""
    num_tokens: int
    """number of target tokens of all ranks, EOS included"""
    ends_epoch: bool = False


def plan_epoch(
    pairs: PairStore, config: BatchConfig, *, seed: int, epoch: int
) -> list[list[list[int]]]:
    """Return the indices of the sentence pairs of an epoch: a list per update, with a list per
    micro-batch. The last update may have fewer micro-batches."""
    batches = bucketed_batches(
        pairs.source_lengths,
        pairs.target_lengths,
        size=config.size,
        unit=config.unit,
        seed=seed,
        epoch=epoch,
    )
    return [
        batches[start : start + config.accumulate]
        for start in range(0, len(batches), config.accumulate)
    ]


def epoch_updates(
    pairs: PairStore,
    plan: Sequence[list[list[int]]],
    updates_done: int,
    *,
    group: Group,
    prepare: Callable[[Batch], Batch],
    with_extended: bool,
) -> Generator[UpdateBatches, None, None]:
    """Yield the batches of each update of an epoch, except the first `updates_done` updates.

    Args:
        plan: the result of `plan_epoch`.
        prepare: function that prepares a batch for the device. The thread calls the function.
        with_extended: as in `PairStore.batch`.
    """

    def build(micro_batches: list[list[int]]) -> UpdateBatches:
        num_tokens = 0
        batches = []
        for indices in micro_batches:
            num_tokens += int(pairs.target_lengths[indices].sum()) + len(indices)
            # Rows are sorted by length, and a rank takes every n-th row. So all ranks have rows of
            # similar length.
            share = group.share(indices)
            if share:
                batches.append(prepare(pairs.batch(share, with_extended=with_extended)))
        ends_epoch = micro_batches is plan[-1]
        return UpdateBatches(batches, micro_batches, num_tokens, ends_epoch)

    return built_ahead(build, plan[updates_done:])


def built_ahead(
    build: Callable[[ItemT], BuiltT], items: Iterable[ItemT], *, num_ahead: int = 8
) -> Generator[BuiltT, None, None]:
    """Yield `build(item)` for each item in order. One thread builds up to `num_ahead` items ahead
    of time."""
    with ThreadPoolExecutor(max_workers=1, thread_name_prefix="batches") as pool:
        pending: deque[Future[BuiltT]] = deque()
        for item in items:
            pending.append(pool.submit(build, item))
            if len(pending) > num_ahead:
                yield pending.popleft().result()
        while pending:
            yield pending.popleft().result()
