"""The batches of an epoch, from any position on, and the thread that builds them."""

import itertools
import threading

import numpy as np
import pytest

from seq2seq_attn.config import BatchConfig
from seq2seq_attn.data.batch import collate
from seq2seq_attn.train.batches import built_ahead, epoch_updates, plan_epoch
from seq2seq_attn.train.distributed import ALONE


class Pairs:
    """Sentence pair i: i % 7 + 1 tokens on both sides."""

    source_lengths = target_lengths = np.arange(100, dtype=np.int64) % 7 + 1

    def batch(self, indices, *, with_extended=True):
        sequences = [[4 + i % 5] * int(self.source_lengths[i]) for i in indices]
        return collate(sequences, sequences, indices)


def updates(epoch=0, updates_done=0):
    pairs = Pairs()
    plan = plan_epoch(pairs, BatchConfig(size=8, accumulate=3), seed=1, epoch=epoch)
    return epoch_updates(
        pairs, plan, updates_done, group=ALONE, prepare=lambda batch: batch, with_extended=True
    )


def indices(epoch=0, updates_done=0):
    plan = []
    for update in updates(epoch, updates_done):
        plan.append([batch.indices_B.tolist() for batch in update.batches])
    return plan


def test_an_epoch_is_every_pair_once_in_groups_and_continues_anywhere():
    whole = indices()
    batches = itertools.chain(*whole)
    assert sorted(itertools.chain(*batches)) == list(range(100))
    assert [len(update) for update in whole[:-1]] == [3] * (len(whole) - 1)
    assert indices(updates_done=2) == whole[2:]
    for updates_done in (0, 3, 4):
        rest = list(updates(updates_done=updates_done))
        assert [update.ends_epoch for update in rest] == [False] * (len(rest) - 1) + [True]


def test_epochs_differ_and_repeat():
    assert indices(0) != indices(1) == indices(1)


def test_building_ahead_keeps_order_and_stays_within_its_limit():
    built = []

    def build(item):
        built.append(item)
        return item * item

    results = built_ahead(build, range(100), num_ahead=4)
    assert next(results) == 0
    results.close()
    assert len(built) <= 6
    assert list(built_ahead(build, range(100), num_ahead=4)) == [i * i for i in range(100)]


def test_building_ahead_runs_in_one_other_thread_and_passes_errors_on():
    def build(item):
        if item == 3:
            raise ValueError("pair 3 is broken")
        return threading.current_thread().name

    results = built_ahead(build, range(5), num_ahead=1)
    assert {next(results) for _ in range(3)} == {"batches_0"}
    with pytest.raises(ValueError, match="pair 3"):
        next(results)
