"""The batches of an epoch (or a rank's share of them), from any position on. A thread builds them ahead of time.

The pairs of every batch are known before the epoch starts (`data/buckets.py`), so resuming in its middle is a slice,
and the thread only pads.
"""

from collections import deque
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import NamedTuple, TypeVar

from seq2seq_attn.config import BatchConfig
from seq2seq_attn.data.batch import Batch
from seq2seq_attn.data.buckets import bucketed_batches
from seq2seq_attn.data.store import PairStore
from seq2seq_attn.errors import UserError
from seq2seq_attn.train.distributed import ALONE, Group

ItemT = TypeVar("ItemT")
BuiltT = TypeVar("BuiltT")


class UpdateBatches(NamedTuple):
    """The batches of one update."""

    batches: list[Batch]
    """this rank's share of each micro-batch's rows, if it has any"""
    indices: list[list[int]]
    """the training pairs of each micro-batch, over all ranks"""
    num_tokens: int
    """target tokens of all ranks, including EOS"""
    ends_epoch: bool = False


class EpochBatches:
    """The updates of an epoch, with the pairs of their micro-batches."""

    def __init__(
        self,
        pairs: PairStore,
        config: BatchConfig,
        *,
        seed: int,
        epoch: int,
        group: Group = ALONE,
        prepare: Callable[[Batch], Batch] = lambda batch: batch,
        with_extended: bool = True,
    ) -> None:
        """`prepare`: applied to each batch ahead of time, for the device. `with_extended`: as in `PairStore.batch`."""
        self._pairs = pairs
        self._group = group
        self._prepare = prepare
        self._with_extended = with_extended
        self._accumulate = config.accumulate
        self._indices = bucketed_batches(
            pairs.source_lengths, pairs.target_lengths, size=config.size, unit=config.unit, seed=seed, epoch=epoch
        )

    @property
    def num_updates(self) -> int:
        """Number of updates. The last may have fewer micro-batches than the others."""
        return -(-len(self._indices) // self._accumulate)

    def updates(self, batches_done: int) -> Generator[UpdateBatches, None, None]:
        """The micro-batches of each update from this micro-batch on.

        Raises:
            UserError: the epoch has no such micro-batch.
        """
        num_batches = len(self._indices)
        if not 0 <= batches_done < num_batches:
            raise UserError(
                f"micro-batch {batches_done} of an epoch with {num_batches}: the saved state belongs to another "
                "corpus; start a new run"
            )
        starts = range(batches_done, num_batches, self._accumulate)
        return built_ahead(self._build, [self._indices[start : start + self._accumulate] for start in starts])

    def _build(self, micro_batches: list[list[int]]) -> UpdateBatches:
        # rows are sorted by length, so every n-th row gives all ranks rows of similar length
        shares = [self._group.share(indices) for indices in micro_batches]
        num_tokens = sum(int(self._pairs.target_lengths[indices].sum()) + len(indices) for indices in micro_batches)
        built = (self._pairs.batch(share, with_extended=self._with_extended) for share in shares if share)
        batches = [self._prepare(batch) for batch in built]
        return UpdateBatches(batches, micro_batches, num_tokens, ends_epoch=micro_batches[-1] is self._indices[-1])


def built_ahead(
    build: Callable[[ItemT], BuiltT], items: Iterable[ItemT], *, num_ahead: int = 8
) -> Generator[BuiltT, None, None]:
    """`build(item)` for each item in order, with up to `num_ahead` built ahead of time in one thread."""
    with ThreadPoolExecutor(max_workers=1, thread_name_prefix="batches") as pool:
        pending: deque[Future[BuiltT]] = deque()
        for item in items:
            pending.append(pool.submit(build, item))
            if len(pending) > num_ahead:
                yield pending.popleft().result()
        while pending:
            yield pending.popleft().result()
