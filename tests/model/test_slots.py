"""What is special about pooled slots."""

import pytest
import torch

from seq2seq_attn.model.attention import build_attention


@pytest.fixture
def case():
    torch.manual_seed(0)
    values, mask = torch.randn(3, 5, 22), torch.arange(5) < torch.tensor([5, 2, 1]).unsqueeze(1)
    return values, mask


def build(num_slots):
    torch.manual_seed(1)
    return build_attention("slots", query_size=13, memory_size=22, options={"num_slots": num_slots})


def test_each_slot_is_a_mean_of_real_positions(case):
    values, mask = case
    attention = build(7)
    pool, _ = attention.pool(values, mask)
    assert pool.shape == (3, 7, 5)
    torch.testing.assert_close(pool.sum(dim=2), torch.ones(3, 7))
    assert (pool.transpose(1, 2)[~mask] == 0).all()
    memory, _ = attention.prepare(values, mask)
    assert memory.values_BSM.shape == (3, 7, 22)
    torch.testing.assert_close(memory.values_BSM[2], values[2, :1].expand(7, -1))  # one token: nothing to choose


def test_one_slot_is_a_fixed_vector(case):
    values, mask = case
    attention = build(1)
    memory, state = attention.prepare(values, mask)
    contexts = [attention.attend(torch.randn(3, 13), memory, state)[0] for _ in range(3)]
    assert torch.equal(contexts[0], contexts[1])
    assert torch.equal(contexts[0], contexts[2])


def test_memory_does_not_grow_with_the_sentence(case):
    values, mask = case
    short, _ = build(4).prepare(values[:, :2], mask[:, :2])
    long, _ = build(4).prepare(values, mask)
    assert short.values_BSM.shape == long.values_BSM.shape
