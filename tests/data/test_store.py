"""Ids on disk."""

import numpy as np
import pytest

from seq2seq_attn.data.store import PairStore, SequenceStore, SequenceWriter


@pytest.fixture
def pairs(tmp_path):
    SequenceWriter(tmp_path / "s").add(np.array([4, 5, 6, 7]), np.array([2, 0, 2]))
    SequenceWriter(tmp_path / "t").add(np.array([8]), np.array([0, 0, 1]))
    return PairStore(SequenceStore(tmp_path / "s"), SequenceStore(tmp_path / "t"))


def test_sequences_come_back(pairs):
    assert len(pairs) == 3
    assert [pairs.source_ids[i].tolist() for i in range(3)] == [[4, 5], [], [6, 7]]
    assert [pairs.target_ids[i].tolist() for i in range(3)] == [[], [], [8]]
    assert pairs.source_ids[0].dtype == np.int32


def test_lengths_are_numbers_of_tokens(pairs):
    assert pairs.source_lengths.tolist() == [2, 0, 2]
    assert pairs.target_lengths.dtype == np.int64


@pytest.mark.parametrize("index", [3, -1])
def test_an_index_out_of_range_is_an_error(pairs, index):
    with pytest.raises(IndexError, match=f"sentence {index} of 3"):
        pairs.source_ids[index]


def test_all_sequences_may_be_empty(tmp_path):
    SequenceWriter(tmp_path / "none").add(np.array([], dtype=np.int64), np.array([0, 0]))
    assert [ids.tolist() for ids in SequenceStore(tmp_path / "none")] == [[], []]


def test_ids_are_mapped_not_read(pairs):
    ids = pairs.source_ids[0]
    while not isinstance(ids, np.memmap):
        ids = ids.base
    with pytest.raises(ValueError, match="read-only"):
        pairs.source_ids[0][0] = 1
