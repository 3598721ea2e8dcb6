"""Padding sentence pairs into tensors."""

import numpy as np
import torch

from seq2seq_attn.data.batch import collate, collate_source, rounded_up, swapped
from seq2seq_attn.text.vocab import BOS, EOS, PAD, UNK


def test_rows_end_with_eos_and_target_in_is_target_out_one_step_later():
    source = collate_source([[7, 8, 9], [], np.array([5], dtype=np.int32)])
    assert source.ids_BS.tolist() == [[7, 8, 9, EOS], [EOS, PAD, PAD, PAD], [5, EOS, PAD, PAD]]
    assert source.ids_BS.dtype == torch.int64
    assert source.lengths_B.tolist() == source.mask_BS.sum(1).tolist() == [4, 1, 2]
    batch = collate([[7], [8]], [[4, 5], []], [11, 3])
    assert batch.tgt_in_BT.tolist() == [[BOS, 4, 5], [BOS, PAD, PAD]]
    assert batch.tgt_out_BT.tolist() == [[4, 5, EOS], [EOS, PAD, PAD]]
    assert batch.num_tokens == 4 == int((batch.tgt_out_BT != PAD).sum())
    assert batch.indices_B.tolist() == [11, 3]


def test_every_tensor_goes_to_the_device_but_lengths_and_indices():
    vectors = [np.ones((1, 2), dtype=np.float32)] * 2
    moved = collate(
        [[7], [8]],
        [[4, 5], []],
        [11, 3],
        links=[np.zeros((1, 2), dtype=np.int64)] * 2,
        vectors=vectors,
    )
    moved = moved.to(torch.device("meta"))
    values = {**moved._asdict(), **moved.source._asdict()}
    tensors = {
        name: value.device.type for name, value in values.items() if isinstance(value, torch.Tensor)
    }
    assert {name for name, device in tensors.items() if device == "cpu"} == {
        "lengths_B",
        "indices_B",
    }
    assert {"ids_BS", "vectors_BSF", "tgt_in_BT", "links_L3"} <= {
        name for name in tensors if tensors[name] == "meta"
    }


def test_rounding_up_adds_rows_and_positions_that_hold_nothing():
    batch = collate([[7, 8], [8]], [[4, 5], []], [11, 3])
    rounded = rounded_up(batch, rows=3, positions=4)
    assert rounded.source.ids_BS.tolist() == [
        [7, 8, EOS, PAD],
        [8, EOS, PAD, PAD],
        [EOS, PAD, PAD, PAD],
    ]
    assert rounded.source.lengths_B.tolist() == [3, 2, 1]
    assert rounded.tgt_in_BT.tolist() == [[BOS, 4, 5, PAD], [BOS, PAD, PAD, PAD], [PAD] * 4]
    assert rounded.tgt_out_BT.tolist() == [[4, 5, EOS, PAD], [EOS, PAD, PAD, PAD], [PAD] * 4]
    assert (rounded.num_tokens, rounded.indices_B.tolist()) == (4, [11, 3])
    again = rounded_up(rounded, rows=3, positions=4)
    assert again.tgt_out_BT.shape == rounded.tgt_out_BT.shape


def test_links_name_row_source_and_target_position():
    links = [
        np.array([[0, 1], [2, 0]], dtype=np.int32),
        np.empty((0, 2), dtype=np.int32),
        np.array([[1, 1]]),
    ]
    batch = collate([[7, 8, 9], [8], [9, 10]], [[4, 5], [6], [6, 7]], [0, 1, 2], links)
    assert batch.links_L3.tolist() == [[0, 0, 1], [0, 2, 0], [2, 1, 1]]
    assert batch.links_L3.dtype == torch.int64
    assert torch.equal(batch.to(torch.device("cpu")).links_L3, batch.links_L3)
    assert torch.equal(rounded_up(batch, rows=4, positions=4).links_L3, batch.links_L3)
    assert collate([[7]], [[4]], [0], [np.empty((0, 2))]).links_L3.shape == (0, 3)
    assert collate([[7]], [[4]], [0]).links_L3 is None


def test_a_swapped_batch_is_the_batch_of_the_swapped_pairs():
    sources, targets = [[7, 8, 9], [], [9]], [[4, 5], [6], []]
    links = [
        np.array([[0, 1], [2, 0]]),
        np.empty((0, 2), dtype=np.int32),
        np.empty((0, 2), dtype=np.int32),
    ]
    batch = collate(sources, targets, [3, 1, 2], links)
    found, expected = (
        swapped(batch),
        collate(targets, sources, [3, 1, 2], [of_pair[:, ::-1] for of_pair in links]),
    )
    for one, other in ((found, expected), (swapped(found), batch)):
        assert one.num_tokens == other.num_tokens
        for name, tensor in one._replace(source=None, num_tokens=None)._asdict().items():
            assert tensor is None or torch.equal(tensor, getattr(other, name)), name
        assert one.source.vectors_BSF is other.source.vectors_BSF is None
        assert all(
            torch.equal(*tensors) for tensors in zip(one.source[:3], other.source[:3], strict=True)
        )
    assert found.source.extended_ids_BS[0].tolist() == [UNK, UNK, EOS]
