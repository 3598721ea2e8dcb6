"""Pooled slots."""

import pytest
import torch

from seq2seq_attn.data.batch import collate_source
from seq2seq_attn.model.encoder.base import Encoded
from seq2seq_attn.model.normalizer import softmax
from seq2seq_attn.model.variants import build_variant

SOURCE = collate_source([[5, 6, 7, 8], [9], []])


@pytest.fixture
def encoded():
    torch.manual_seed(0)
    values = torch.randn(3, 5, 22)
    return Encoded(values, SOURCE.mask_BS, values[:, 0])


def build(num_slots):
    torch.manual_seed(1)
    sizes = {"query_size": 13, "memory_size": 22, "normalizer": softmax.weights}
    attention = build_variant("attention", "slots", {"num_slots": num_slots}, **sizes)
    torch.nn.init.uniform_(attention.score_weight_A)
    return attention


def test_each_slot_is_a_mean_of_real_positions(encoded):
    attention = build(7)
    pool = attention.pool(encoded)
    assert pool.shape == (3, 7, 5)
    torch.testing.assert_close(pool.sum(dim=2), torch.ones(3, 7))
    assert (pool.transpose(1, 2)[~encoded.mask_BS] == 0).all()
    memory, _ = attention.prepare(encoded, SOURCE)
    assert memory.values_BSM.shape == (3, 7, 22)
    # one token: nothing to choose
    torch.testing.assert_close(memory.values_BSM[2], encoded.values_BSM[2, :1].expand(7, -1))


def test_one_slot_is_a_fixed_vector(encoded):
    attention = build(1)
    memory, state = attention.prepare(encoded, SOURCE)
    contexts = [attention.step(torch.randn(3, 13), memory, state).context_BM for _ in range(3)]
    assert torch.equal(contexts[0], contexts[1])
    assert torch.equal(contexts[0], contexts[2])


def test_memory_does_not_grow_with_the_sentence(encoded):
    short = Encoded(encoded.values_BSM[:, :2], encoded.mask_BS[:, :2], encoded.final_BM)
    memories = [build(4).prepare(one, SOURCE)[0] for one in (short, encoded)]
    assert memories[0].values_BSM.shape == memories[1].values_BSM.shape
