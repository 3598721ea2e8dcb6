import itertools

import pytest
import torch

from seq2seq_attn.model.build import initialize
from seq2seq_attn.model.variants import build_variant
from tests.model.attention.conftest import LENGTHS


@pytest.fixture
def attention(build):
    return build("monotonic", attention_size=7, noise=0.0)


def score(attention, value, query):
    hidden = torch.tanh(attention.key_projection(value) + attention.query_projection(query))
    direction = attention.score_weight_A / attention.score_weight_A.norm()
    return (attention.weight_norm_gain_1 * (direction @ hidden) + attention.offset_bias_1).squeeze()


def path_probabilities(stops):
    """The probability that step i stops at j, from p_ij [steps, length], by enumerating all
    monotonic paths."""
    num_steps, length = stops.shape
    expected = torch.zeros(num_steps, length, dtype=stops.dtype)
    for path in itertools.combinations_with_replacement(range(length), num_steps):
        probability = 1.0
        before = 0
        for i, stop in enumerate(path):
            for j in range(before, stop):
                probability = probability * (1.0 - stops[i, j])
            probability = probability * stops[i, stop]
            before = stop
        for i, stop in enumerate(path):
            expected[i, stop] += probability
    return expected


def test_training_weights_are_the_expectation_over_all_paths(attention, encoded, source, queries):
    memory, state = attention.prepare(encoded, source)
    found = []
    for query in queries:
        attended = attention.step(query, memory, state)
        state = attended.state
        found.append(attended.weights_BS)
    for row, length in enumerate(LENGTHS):
        values = encoded.values_BSM[row, :length]
        stops = torch.stack(
            [torch.stack([score(attention, h, q[row]) for h in values]) for q in queries]
        ).sigmoid()
        stops[:, -1] = 1.0
        expected = path_probabilities(stops.detach())
        torch.testing.assert_close(torch.stack([w[row, :length] for w in found]), expected)


def test_search_takes_the_first_positive_score_from_where_it_stopped(attention, encoded, source):
    attention.eval()
    with torch.no_grad():
        attention.weight_norm_gain_1.fill_(5.0)
        attention.offset_bias_1.fill_(0.0)
    memory, state = attention.prepare(encoded, source)
    queries = torch.randn(
        40, 3, 13, dtype=torch.float64, generator=torch.Generator().manual_seed(5)
    )
    before = [0, 0, 0]
    visited = set()
    for query in queries:
        attended = attention.step(query, memory, state)
        state = attended.state
        for row, length in enumerate(LENGTHS):
            values = encoded.values_BSM[row, :length]
            ahead = [
                j for j in range(before[row], length) if score(attention, values[j], query[row]) > 0
            ]
            before[row] = ahead[0] if ahead else length - 1
            expected = torch.zeros(5, dtype=torch.float64)
            expected[before[row]] = 1.0
            assert torch.equal(attended.weights_BS[row], expected)
        visited.add(before[0])
    assert visited == {0, 3, 4}  # it stayed, skipped and moved on


def test_mass_is_kept_over_many_steps_in_single_precision(attention, source, encoded):
    attention = attention.float()
    long = encoded._replace(
        values_BSM=torch.randn(2, 60, 22) * 5.0,
        mask_BS=torch.ones(2, 60, dtype=torch.bool),
        final_BM=torch.zeros(2, 22),
    )
    memory, state = attention.prepare(long, source)
    for _ in range(80):
        attended = attention.step(torch.randn(2, 13) * 5.0, memory, state)
        state = attended.state
    torch.testing.assert_close(attended.weights_BS.sum(dim=1), torch.ones(2))


def test_noise_is_drawn_in_training_only(build, encoded, source, queries):
    attention = build("monotonic")
    memory, state = attention.prepare(encoded, source)
    first, second = (attention.step(queries[0], memory, state).weights_BS for _ in range(2))
    assert not torch.equal(first, second)
    attention.eval()
    first, second = (attention.step(queries[0], memory, state).weights_BS for _ in range(2))
    assert torch.equal(first, second)


def test_the_gain_begins_at_the_root_of_the_size_and_the_offset_at_0():
    attention = build_variant(
        "attention", "monotonic", {"attention_size": 7}, query_size=5, memory_size=3
    )
    initialize(attention)
    assert (attention.weight_norm_gain_1.item(), attention.offset_bias_1.item()) == (
        pytest.approx(7**-0.5),
        0.0,
    )
