"""Padding sentence pairs into tensors."""

import numpy as np
import pytest
import torch

from seq2seq_attn.data.batch import collate, collate_source, rounded_up, swapped
from seq2seq_attn.text.vocab import BOS, EOS, PAD

NO_LINKS = np.empty((0, 2), dtype=np.int32)
ROW_OF_PAD = [PAD] * 4


@pytest.fixture
def batch():
    """Two pairs, the second without a target."""
    links = [np.array([[0, 1], [1, 0]], dtype=np.int32), NO_LINKS]
    return collate([[7, 8], [8]], [[4, 5], []], [11, 3], links)


def values(batch):
    """The fields of a batch and of its source, as lists and numbers."""
    fields = {**batch._asdict(), **batch.source._asdict()}
    del fields["source"]
    for name, value in fields.items():
        if isinstance(value, torch.Tensor):
            fields[name] = value.tolist()
    return fields


def test_source_rows_end_with_eos():
    source = collate_source([[7, 8, 9], [], np.array([5], dtype=np.int32)])
    assert source.ids_BS.tolist() == [[7, 8, 9, EOS], [EOS, PAD, PAD, PAD], [5, EOS, PAD, PAD]]
    assert source.ids_BS.dtype == torch.int64
    assert source.lengths_B.tolist() == source.mask_BS.sum(1).tolist() == [4, 1, 2]


def test_target_in_is_target_out_one_step_later(batch):
    assert batch.tgt_in_BT.tolist() == [[BOS, 4, 5], [BOS, PAD, PAD]]
    assert batch.tgt_out_BT.tolist() == [[4, 5, EOS], [EOS, PAD, PAD]]
    assert batch.num_tokens == 4
    assert batch.indices_B.tolist() == [11, 3]


def test_every_tensor_goes_to_the_device_but_lengths_and_indices():
    vectors = [np.ones((1, 2), dtype=np.float32)]
    batch = collate([[7]], [[4]], [0], [NO_LINKS], vectors=vectors).to(torch.device("meta"))
    on_cpu = set()
    for name, value in {**batch._asdict(), **batch.source._asdict()}.items():
        if isinstance(value, torch.Tensor) and value.device.type == "cpu":
            on_cpu.add(name)
    assert on_cpu == {"lengths_B", "indices_B"}


def test_rounding_up_adds_rows_and_positions_that_hold_nothing(batch):
    rounded = rounded_up(batch, rows=3, positions=4)
    last = [EOS, PAD, PAD, PAD]
    assert rounded.source.ids_BS.tolist() == [[7, 8, EOS, PAD], [8, EOS, PAD, PAD], last]
    assert rounded.source.lengths_B.tolist() == [3, 2, 1]
    assert rounded.tgt_in_BT.tolist() == [[BOS, 4, 5, PAD], [BOS, PAD, PAD, PAD], ROW_OF_PAD]
    assert rounded.tgt_out_BT.tolist() == [[4, 5, EOS, PAD], last, ROW_OF_PAD]
    for name in ("num_tokens", "indices_B", "links_L3"):
        assert values(rounded)[name] == values(batch)[name]
    assert values(rounded_up(rounded, rows=3, positions=4)) == values(rounded)


def test_links_name_row_source_and_target_position(batch):
    assert batch.links_L3.tolist() == [[0, 0, 1], [0, 1, 0]]
    assert batch.links_L3.dtype == torch.int64
    assert collate([[7]], [[4]], [0], [NO_LINKS]).links_L3.shape == (0, 3)
    assert collate([[7]], [[4]], [0]).links_L3 is None


def test_a_swapped_batch_is_the_batch_of_the_swapped_pairs():
    sources = [[7, 8, 9], [], [9]]
    targets = [[4, 5], [6], []]
    links = [np.array([[0, 1], [2, 0]]), NO_LINKS, NO_LINKS]
    swapped_links = [pair_links[:, ::-1] for pair_links in links]
    batch = collate(sources, targets, [3, 1, 2], links)
    assert values(swapped(batch)) == values(collate(targets, sources, [3, 1, 2], swapped_links))
    assert values(swapped(swapped(batch))) == values(batch)
