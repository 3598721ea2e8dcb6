"""What is special about attention variants with a state of their own or with heads, against slow loops."""

import pytest
import torch

from seq2seq_attn.data.batch import collate_source
from seq2seq_attn.errors import UsageError
from seq2seq_attn.model.encoder.base import Encoded
from seq2seq_attn.model.normalizer import softmax
from seq2seq_attn.model.variants import build_variant

SOURCE = collate_source([[5, 6, 7, 8], [9], []])
SIZES = {"query_size": 13, "memory_size": 22, "normalizer": softmax.weights}


def build(name, **options):
    torch.manual_seed(1)
    attention = build_variant("attention", name, options, **SIZES)
    for parameter in attention.parameters():
        torch.nn.init.uniform_(parameter, -0.5, 0.5)
    return attention.double()


@pytest.fixture
def encoded():
    torch.manual_seed(0)
    values = torch.randn(3, 5, 22, dtype=torch.float64)
    return Encoded(values, SOURCE.mask_BS, values[:, 0])


def test_location_sees_the_last_weights_around_a_position(encoded):
    attention = build("location", num_filters=2, radius=1)
    memory, state = attention.prepare(encoded, SOURCE)
    query = torch.randn(3, 13, dtype=torch.float64)
    first = attention.step(query, memory, state)
    second = attention.step(query, memory, first.state)
    weights = first.weights_BS[0]
    scores = []
    for j in range(5):
        seen = [weights[k] if 0 <= k < 5 else torch.zeros(()).double() for k in (j - 1, j, j + 1)]
        features = (attention.filters.weight.squeeze(1) * torch.stack(seen)).sum(dim=1)
        hidden = attention.query_projection(query[0]) + memory.keys_BSA[0, j] + attention.location_projection(features)
        scores.append(torch.tanh(hidden) @ attention.score_weight_A)
    torch.testing.assert_close(second.weights_BS[0], torch.softmax(torch.stack(scores), dim=0))
    assert not torch.allclose(first.weights_BS[0], second.weights_BS[0])


def test_coverage_remembers_more_than_the_last_step(encoded):
    attention = build("coverage", coverage_size=3)
    memory, state = attention.prepare(encoded, SOURCE)
    queries = torch.randn(3, 3, 13, dtype=torch.float64)
    coverage = torch.zeros(5, 3, dtype=torch.float64)
    for query in queries:
        hidden = attention.query_projection(query[0]) + memory.keys_BSA[0] + attention.coverage_projection(coverage)
        expected = torch.softmax(torch.tanh(hidden) @ attention.score_weight_A, dim=0)
        attended = attention.step(query, memory, state)
        torch.testing.assert_close(attended.weights_BS[0], expected)
        state = attended.state
        coverage = torch.stack(
            [
                attention.update(torch.cat([expected[j : j + 1], memory.values_BSM[0, j], query[0]]), coverage[j])
                for j in range(5)
            ]
        )
    torch.testing.assert_close(state.coverage_BSD[0], coverage)


@pytest.mark.parametrize("score", ["additive", "scaled_dot"])
def test_heads_attend_on_their_own(encoded, score):
    attention = build("multi_head", num_heads=2, score=score, attention_size=6)
    memory, state = attention.prepare(encoded, SOURCE)
    query = torch.randn(3, 13, dtype=torch.float64)
    attended = attention.step(query, memory, state)
    contexts, weights = [], []
    for head in range(2):
        rows, columns = slice(3 * head, 3 * head + 3), slice(11 * head, 11 * head + 11)
        q = attention.query_projection(query[0])[rows]
        keys = attention.key_projection(encoded.values_BSM[0])[:, rows]
        if score == "additive":
            scores = torch.tanh(keys + q) @ attention.score_weight_Na[head]
        else:
            scores = keys @ q / 3**0.5
        weights.append(torch.softmax(scores, dim=0))
        contexts.append(weights[-1] @ attention.value_projection(encoded.values_BSM[0])[:, columns])
    torch.testing.assert_close(attended.context_BM[0], torch.cat(contexts))
    torch.testing.assert_close(attended.weights_BS[0], (weights[0] + weights[1]) / 2)


def test_heads_that_do_not_fit_are_refused():
    with pytest.raises(UsageError, match="num_heads=3: expected a divisor of the encoder's size, which is 22"):
        build("multi_head", num_heads=3)
    with pytest.raises(UsageError, match="num_heads=2: expected a divisor of attention_size, which is 5"):
        build("multi_head", num_heads=2, attention_size=5)
