"""Training pairs joined end to end."""

from __future__ import annotations

import numpy as np
import pytest

from seq2seq_attn.data.concatenation import ConcatenatedPairs, concatenate_pairs
from seq2seq_attn.data.id_store import IdStore
from seq2seq_attn.data.store import PairStore


@pytest.fixture
def pairs(tmp_path):
    IdStore.write(tmp_path / "s", np.array([4, 5, 6, 7, 8]), np.array([2, 1, 0, 2]))
    IdStore.write(tmp_path / "t", np.array([14, 15, 16, 17]), np.array([1, 1, 1, 1]))
    return PairStore(IdStore(tmp_path / "s"), IdStore(tmp_path / "t"))


def test_a_group_reads_as_one_pair(pairs):
    concatenated = ConcatenatedPairs(pairs, [(3, 0), (1,), (2,)])
    assert len(concatenated) == 3
    assert concatenated.source_lengths.tolist() == [4, 1, 0]
    assert concatenated.target_lengths.tolist() == [2, 1, 1]
    batch = concatenated.batch([0, 1])
    assert batch.source.ids_BS.tolist() == [[7, 8, 4, 5, 2], [6, 2, 0, 0, 0]]
    assert batch.tgt_out_BT.tolist() == [[17, 14, 2], [15, 2, 0]]
    assert batch.indices_B.tolist() == [3, 1]
    assert concatenated.members([2, 0]) == [2, 3, 0]


def test_without_probabilities_pairs_stay_as_they_are(pairs):
    assert concatenate_pairs(pairs, {}, seed=1, epoch=0) is pairs
    assert concatenate_pairs(pairs, {2: 0.0}, seed=1, epoch=0) is pairs


def test_every_epoch_and_seed_joins_others(tmp_path):
    IdStore.write(tmp_path / "s", np.arange(200), np.full(100, 2))
    pairs = PairStore(IdStore(tmp_path / "s"), IdStore(tmp_path / "s"))
    epochs = [
        concatenate_pairs(pairs, {1: 0.5, 2: 0.5}, seed=seed, epoch=epoch)
        for seed, epoch in ((1, 0), (1, 1), (1, 1), (2, 1))
    ]
    assert [len(epoch) for epoch in epochs] == [67, 67, 67, 67]
    firsts = [epoch.batch(range(67)).source.ids_BS.tolist() for epoch in epochs]
    assert firsts[0] != firsts[1]
    assert firsts[1] == firsts[2] != firsts[3]
    assert sorted(i for row in firsts[0] for i in row if i > 3) == list(range(4, 200))


def test_links_of_a_group_move_with_its_tokens(pairs, tmp_path):
    assert ConcatenatedPairs(pairs, [(3, 0)]).batch([0]).links_L3 is None
    flat = [0, 0, 1, 0, 0, 0, 1, 0]  # pair 0: 0-0 1-0, pair 1: 0-0, pair 3: 1-0
    IdStore.write(tmp_path / "l", np.array(flat), np.array([4, 2, 0, 2]))
    linked = PairStore(IdStore(tmp_path / "s"), IdStore(tmp_path / "t"), IdStore(tmp_path / "l"))
    batch = ConcatenatedPairs(linked, [(3, 0), (2,), (2, 1)]).batch([0, 1, 2])
    assert batch.links_L3.tolist() == [[0, 1, 0], [0, 2, 1], [0, 3, 1], [2, 0, 1]]
