"""Pooled slots."""

import torch


def test_each_slot_is_a_mean_of_real_positions(build, encoded, source):
    attention = build("slots", num_slots=7)
    pool = attention.pool(encoded)
    assert pool.shape == (3, 7, 5)
    torch.testing.assert_close(pool.sum(dim=2), torch.ones(3, 7, dtype=torch.float64))
    assert (pool.transpose(1, 2)[~encoded.mask_BS] == 0).all()
    memory, _ = attention.prepare(encoded, source)
    assert memory.values_BSM.shape == (3, 7, 22)
    # one token: nothing to choose
    torch.testing.assert_close(memory.values_BSM[2], encoded.values_BSM[2, :1].expand(7, -1))


def test_one_slot_is_a_fixed_vector(build, encoded, source, queries):
    attention = build("slots", num_slots=1)
    memory, state = attention.prepare(encoded, source)
    contexts = [attention.step(query, memory, state).context_BM for query in queries]
    assert torch.equal(contexts[0], contexts[1])
    assert torch.equal(contexts[0], contexts[2])
