from __future__ import annotations

import threading

import numpy as np
import pytest

from seq2seq_attn.config import BatchConfig
from seq2seq_attn.data.batch import Batch, collate
from seq2seq_attn.errors import UserError
from seq2seq_attn.train.batches import EpochBatches, built_ahead


class Pairs:
    """Sentence pair i: i % 7 + 1 tokens on both sides."""

    source_lengths = target_lengths = np.arange(100, dtype=np.int64) % 7 + 1

    def batch(self, indices: list[int], *, with_extended: bool = True) -> Batch:
        sequences = [[4 + i % 5] * int(self.source_lengths[i]) for i in indices]
        return collate(sequences, sequences, indices)


def epoch(number: int = 0, *, size: int = 8, accumulate: int = 3) -> EpochBatches:
    config = BatchConfig(size=size, accumulate=accumulate)
    return EpochBatches(Pairs(), config, seed=1, epoch=number)  # type: ignore[arg-type]


def indices(updates: object) -> list[list[list[int]]]:
    return [[batch.indices_B.tolist() for batch in update.batches] for update in updates]  # type: ignore[attr-defined]


def test_an_epoch_is_every_pair_once_in_groups() -> None:
    batches = epoch()
    updates = indices(batches.updates(0))
    assert sorted(i for update in updates for batch in update for i in batch) == list(range(100))
    assert [len(update) for update in updates] == [3] * (len(batches) // 3) + [len(batches) % 3] * (
        len(batches) % 3 > 0
    )
    assert len(updates) == batches.num_updates


@pytest.mark.parametrize("batches_done", [0, 9, 12])
def test_the_last_update_ends_the_epoch(batches_done: int) -> None:
    updates = list(epoch().updates(batches_done))
    assert [update.ends_epoch for update in updates] == [False] * (len(updates) - 1) + [True]


def test_the_middle_of_an_epoch_goes_on_where_it_was() -> None:
    assert indices(epoch().updates(6)) == indices(epoch().updates(0))[2:]


@pytest.mark.parametrize("batches_done", [-1, 10**6])
def test_a_place_that_the_epoch_does_not_have_is_refused(batches_done: int) -> None:
    with pytest.raises(UserError, match=rf"micro-batch {batches_done} of an epoch with \d+"):
        epoch().updates(batches_done)


def test_epochs_differ_and_repeat() -> None:
    assert indices(epoch(0).updates(0)) != indices(epoch(1).updates(0))
    assert indices(epoch(1).updates(0)) == indices(epoch(1).updates(0))


def test_building_ahead_keeps_order_and_stays_within_its_limit() -> None:
    built: list[int] = []

    def build(item: int) -> int:
        built.append(item)
        return item * item

    results = built_ahead(build, range(100), num_ahead=4)
    assert next(results) == 0
    results.close()
    assert len(built) <= 6
    assert list(built_ahead(build, range(100), num_ahead=4)) == [i * i for i in range(100)]


def test_building_ahead_runs_in_one_other_thread_and_passes_errors_on() -> None:
    def build(item: int) -> str:
        if item == 3:
            raise ValueError("pair 3 is broken")
        return threading.current_thread().name

    results = built_ahead(build, range(5), num_ahead=1)
    assert {next(results) for _ in range(3)} == {"batches_0"}
    with pytest.raises(ValueError, match="pair 3 is broken"):
        next(results)
