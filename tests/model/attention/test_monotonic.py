import itertools

import pytest
import torch

from seq2seq_attn.model.build import initialize
from seq2seq_attn.model.variants import build_variant
from tests.model.attention.conftest import LENGTHS, additive_scores


@pytest.fixture
def attention(build):
    return build("monotonic", attention_size=7, noise=0.0)


def scores(attention, values, query):
    normalized = additive_scores(attention, query, values) / attention.score_weight_A.norm()
    return attention.weight_norm_gain_1 * normalized + attention.offset_bias_1


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
    weights_by_step = []
    for query in queries:
        attended = attention.step(query, memory, state)
        state = attended.state
        weights_by_step.append(attended.weights_BS)
    for row, length in enumerate(LENGTHS):
        values = encoded.values_BSM[row, :length]
        stops = torch.stack([scores(attention, values, query[row]) for query in queries]).sigmoid()
        stops[:, -1] = 1.0
        weights = torch.stack(weights_by_step)[:, row, :length]
        torch.testing.assert_close(weights, path_probabilities(stops.detach()))


def test_search_takes_the_first_positive_score_from_where_it_stopped(attention, encoded, source):
    attention.eval()
    with torch.no_grad():
        attention.weight_norm_gain_1.fill_(5.0)
        attention.offset_bias_1.fill_(0.0)
    memory, state = attention.prepare(encoded, source)
    generator = torch.Generator().manual_seed(5)
    queries = torch.randn(40, 3, 13, dtype=torch.float64, generator=generator)
    stopped = [0, 0, 0]
    visited = set()
    for query in queries:
        attended = attention.step(query, memory, state)
        state = attended.state
        for row, length in enumerate(LENGTHS):
            is_stop = scores(attention, encoded.values_BSM[row, :length], query[row]) > 0
            while stopped[row] < length - 1 and not is_stop[stopped[row]]:
                stopped[row] += 1
            weights = attended.weights_BS[row].tolist()
            assert weights == [float(s == stopped[row]) for s in range(5)]
        visited.add(stopped[0])
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


@pytest.mark.parametrize("training", [True, False])
def test_noise_is_drawn_in_training_only(build, encoded, source, queries, training):
    attention = build("monotonic").train(training)
    memory, state = attention.prepare(encoded, source)
    first = attention.step(queries[0], memory, state).weights_BS
    second = attention.step(queries[0], memory, state).weights_BS
    assert torch.equal(first, second) != training


def test_the_gain_begins_at_the_root_of_the_size_and_the_offset_at_0():
    sizes = {"query_size": 5, "memory_size": 3}
    attention = build_variant("attention", "monotonic", {"attention_size": 7}, **sizes)
    initialize(attention)
    assert attention.weight_norm_gain_1.item() == pytest.approx(7**-0.5)
    assert attention.offset_bias_1.item() == 0.0
