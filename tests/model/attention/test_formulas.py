"""Attention variants against their formulas, sentence by sentence and position by position."""

import itertools
import math

import pytest
import torch
from torch.testing import assert_close

from seq2seq_attn.errors import UsageError
from tests.model.attention.conftest import LENGTHS, additive_scores
from tests.modules import half_precision


@pytest.fixture
def check(encoded, source, queries):
    """Asks an attention step by step, in three sentences. An oracle gives for one sentence, from
    its values and the queries, weights and context of each step; without a context, it is the mean
    of the values."""

    def check(attention, oracle, asked=queries):
        memory, state = attention.prepare(encoded, source)
        sentences = [encoded.values_BSM[row, :length] for row, length in enumerate(LENGTHS)]
        steps = [list(oracle(values, asked[:, row])) for row, values in enumerate(sentences)]
        for step, query in enumerate(asked):
            attended = attention.step(query, memory, state)
            state = attended.state
            for row, values in enumerate(sentences):
                weights, *contexts = steps[row][step]
                context = contexts[0] if contexts else weights @ values
                weights_S = attended.weights_BS[row]
                assert_close(weights_S[: len(values)], weights)
                assert not weights_S[len(values) :].any()
                assert_close(attended.context_BM[row], context)
        return state

    return check


# ---- dot products and convolutions ----


@pytest.mark.parametrize(
    ("name", "options", "divisor"),
    [
        ("dot", {}, 1.0),
        ("bilinear", {}, 1.0),
        ("bilinear", {"is_scaled": True}, 13**0.5),
        ("scaled_dot", {}, 13**0.5),
        ("scaled_dot", {"attention_size": 5}, 5**0.5),
    ],
)
def test_dot_products(build, check, queries, name, options, divisor):
    attention = build(name, query_size=22 if name == "dot" else 13, **options)
    project_query = getattr(attention, "query_projection", torch.nn.Identity())
    project_key = getattr(attention, "key_projection", torch.nn.Identity())
    if name == "dot":
        queries = torch.nn.functional.pad(queries, (0, 9), value=0.5)

    def oracle(values, queries):
        for query in queries:
            scores = project_key(values) @ project_query(query) / divisor
            yield [scores.softmax(dim=0)]

    check(attention, oracle, queries)


def convolve(inputs, conv, radius):
    """Filters over [S, C], position after position; nothing lies past the edges."""
    outputs = []
    for center in range(len(inputs)):
        total = torch.zeros(conv.out_channels, dtype=inputs.dtype)
        for k in range(2 * radius + 1):
            position = center + k - radius
            if 0 <= position < len(inputs):
                total = total + conv.weight[:, :, k] @ inputs[position]
        outputs.append(total)
    return torch.stack(outputs)


@pytest.mark.parametrize("radius", [1, 2, 6])
def test_convolutional(build, check, radius):
    attention = build("convolutional", num_filters=3, radius=radius)

    def oracle(values, queries):
        patterns = torch.relu(convolve(values, attention.pattern_filters, radius))
        for query in queries:
            features = convolve(patterns, attention.feature_filters, radius) * query
            scores = convolve(features, attention.score_filter, radius)
            yield [scores.squeeze(1).softmax(dim=0)]

    check(attention, oracle)


@pytest.mark.parametrize("window", ["predictive", "monotonic"])
@pytest.mark.parametrize("radius", [1, 2, 10])
@pytest.mark.parametrize("is_scaled", [False, True])
def test_local(build, check, queries, window, radius, is_scaled):
    attention = build(
        "local",
        window=window,
        radius=radius,
        is_scaled=is_scaled,
    )
    scale = 13**-0.5 if is_scaled else 1.0

    def oracle(values, queries):
        last = len(values) - 1
        for step, query in enumerate(queries):
            center = min(step, last)
            if window == "predictive":
                hidden = torch.tanh(attention.position_projection(query))
                center = last * torch.sigmoid(hidden @ attention.position_weight_H).item()
            weights = torch.zeros(last + 1, dtype=torch.float64)
            for s in range(last + 1):
                if abs(s - center) <= radius:
                    weights[s] = (query @ attention.key_projection(values[s]) * scale).exp()
                    if window == "predictive":
                        weights[s] *= math.exp(-((s - center) ** 2) / (2 * (radius / 2) ** 2))
            yield [weights / weights.sum()]

    check(attention, oracle, queries[[0, 1, 2, 0, 1, 2, 0]])  # past the end of every sentence


@pytest.mark.parametrize("score", ["additive", "scaled_dot"])
def test_heads_attend_on_their_own(build, encoded, source, queries, score):
    attention = build(
        "multi_head",
        num_heads=2,
        score=score,
        attention_size=6,
    )
    memory, state = attention.prepare(encoded, source)
    attended = attention.step(queries[0], memory, state)
    values = encoded.values_BSM[0]
    contexts = []
    weights = []
    for head in range(2):
        rows = slice(3 * head, 3 * head + 3)
        columns = slice(11 * head, 11 * head + 11)
        query = attention.query_projection(queries[0, 0])[rows]
        keys = attention.key_projection(values)[:, rows]
        if score == "additive":
            scores = torch.tanh(keys + query) @ attention.score_weight_Na[head]
        else:
            scores = keys @ query / 3**0.5
        weights.append(scores.softmax(dim=0))
        contexts.append(weights[head] @ attention.value_projection(values)[:, columns])
    assert_close(attended.context_BM[0], torch.cat(contexts))
    assert_close(attended.weights_BS[0], (weights[0] + weights[1]) / 2)
    assert_close(attended.extra.weights_BNS[0], torch.stack(weights))


# ---- additive scores ----


def test_key_value_scores_even_coordinates_and_averages_odd_ones(build, check):
    attention = build("key_value", attention_size=7)

    def oracle(values, queries):
        for query in queries:
            weights = additive_scores(attention, query, values[:, 0::2]).softmax(dim=0)
            yield weights, weights @ values[:, 1::2]

    check(attention, oracle)


def test_values_of_odd_width_are_cut_too(build):
    attention = build("key_value", memory_size=5)
    assert attention.context_size == 2
    assert attention.key_projection.in_features == 3


def test_self_history_attends_to_past_queries_too(build, check):
    attention = build("self_history", attention_size=7)

    def oracle(values, queries):
        past = torch.zeros(1, 13, dtype=torch.float64)
        for query in queries:
            weights = additive_scores(attention, query, values).softmax(dim=0)
            hidden = attention.history_query_projection(query)
            hidden = hidden + attention.history_key_projection(past)
            scores = torch.tanh(hidden) @ attention.history_score_weight_A
            yield weights, torch.cat([weights @ values, scores.softmax(dim=0) @ past])
            past = torch.cat([past, query.unsqueeze(0)])

    check(attention, oracle)


def test_location_sees_the_last_weights_around_a_position(build, check):
    attention = build("location", num_filters=2, radius=1)

    def oracle(values, queries):
        weights = torch.zeros(len(values), dtype=torch.float64)
        for query in queries:
            features = convolve(weights.unsqueeze(1), attention.filters, 1)
            projected = attention.location_projection(features)
            weights = additive_scores(attention, query, values, projected).softmax(dim=0)
            yield [weights]

    check(attention, oracle)


TERMS = ("position", "markov", "fertility")
COMBINATIONS = [terms for n in (1, 2, 3) for terms in itertools.combinations(TERMS, n)]


@pytest.mark.parametrize("terms", COMBINATIONS, ids="-".join)
def test_structural_biases(build, check, terms):
    radius = 2
    options = {term: term in terms for term in TERMS}
    attention = build(
        "structural",
        attention_size=7,
        radius=radius,
        **options,
    )

    def oracle(values, queries):
        length = len(values)
        total = [0.0] * length
        last = [0.0] * length
        for j, query in enumerate(queries, start=1):
            features = []
            for i in range(1, length + 1):
                row = []
                if "position" in terms:
                    row += [math.log(1 + j), math.log(1 + i), math.log(1 + length)]
                if "markov" in terms:
                    row += around(last, i - 1, radius)
                if "fertility" in terms:
                    row += around(total, i - 1, radius)
                features.append(row)
            bias = (
                torch.tensor(features, dtype=torch.float64) @ attention.bias_projection.weight.t()
            )
            weights = additive_scores(attention, query, values, bias).softmax(dim=0)
            yield [weights]
            last = weights.tolist()
            total = [before + weight for before, weight in zip(total, last, strict=True)]

    check(attention, oracle)


def around(numbers, center, radius):
    """The numbers up to `radius` positions away, 0 past the edges."""
    padded = [0.0] * radius + numbers + [0.0] * radius
    return padded[center : center + 2 * radius + 1]


@pytest.mark.parametrize(
    ("name", "projection"),
    [
        ("location", "location_projection"),
        ("structural", "bias_projection"),
    ],
)
def test_no_gradient_flows_into_earlier_steps(build, encoded, source, queries, name, projection):
    attention = build(name)
    memory, state = attention.prepare(encoded, source)
    first_query = queries[0].clone().requires_grad_()
    first = attention.step(first_query, memory, state)
    second = attention.step(queries[1], memory, first.state)
    (second.weights_BS**2).sum().backward()
    assert first_query.grad is None
    assert getattr(attention, projection).weight.grad.abs().sum() > 0


# ---- coverage ----


def test_neural_coverage_remembers_more_than_the_last_step(build, check):
    attention = build("coverage", coverage_size=3)
    last = []

    def oracle(values, queries):
        coverage = torch.zeros(len(values), 3, dtype=torch.float64)
        for query in queries:
            projected = attention.coverage_projection(coverage)
            weights = additive_scores(attention, query, values, projected).softmax(dim=0)
            yield [weights]
            asked = query.expand(len(values), -1)
            inputs = torch.cat([weights.unsqueeze(1), values, asked], dim=1)
            coverage = attention.update(inputs, coverage)
        last.append(coverage)

    state = check(attention, oracle)
    for row, length in enumerate(LENGTHS):
        assert_close(state[row, :length], last[row])


@pytest.mark.parametrize(
    "options",
    [
        {"max_fertility": 3.0},
        {"fertility": False},
    ],
)
def test_linguistic_coverage_adds_up_weights_by_fertility(build, check, options):
    attention = build("coverage", kind="linguistic", **options)

    def oracle(values, queries):
        covered = torch.zeros(len(values), 1, dtype=torch.float64)
        fertility = torch.ones_like(covered)
        if "max_fertility" in options:
            fertility = 3.0 * torch.sigmoid(attention.fertility_projection(values))
        for query in queries:
            projected = attention.coverage_projection(covered)
            weights = additive_scores(attention, query, values, projected).softmax(dim=0)
            yield [weights]
            covered = covered + weights.unsqueeze(1) / fertility

    check(attention, oracle)


def test_a_fertility_is_not_below_a_thousandth_of_the_largest(build, encoded, source, queries):
    """Scores of 0, so equal weights: a step over five positions adds (1 / 5) / (2 / 1000)."""
    attention = build("coverage", kind="linguistic")
    for parameter in attention.parameters():
        torch.nn.init.zeros_(parameter)
    torch.nn.init.constant_(attention.fertility_projection.weight, -50.0)
    memory, state = attention.prepare(encoded._replace(values_BSM=encoded.values_BSM.abs()), source)
    state = attention.step(queries[0], memory, state).state
    assert_close(state[0], torch.full((5, 1), 100.0, dtype=torch.float64))


def test_neural_coverage_is_not_rounded_to_bf16(build, encoded, source, queries):
    """With an update gate of sigmoid(7), which is 1 in bf16, it would never change."""
    attention = build("coverage", kind="neural").float()
    torch.nn.init.constant_(attention.update.bias_hh.chunk(3)[1], 7.0)
    encoded = encoded._replace(values_BSM=encoded.values_BSM.float())

    @torch.no_grad()
    def last_state(is_half):
        with half_precision(is_half):
            memory, state = attention.prepare(encoded, source)
            for query in queries.float().repeat(20, 1, 1):
                state = attention.step(query, memory, state).state
        return state

    exact = last_state(False)
    assert (last_state(True) - exact).norm() < 0.02 * exact.norm()


# ---- slots, and what is refused ----


def test_each_slot_is_a_mean_of_real_positions(build, encoded, source):
    attention = build("slots", num_slots=7)
    pool = attention.pool(encoded)
    assert pool.shape == (3, 7, 5)
    assert_close(pool.sum(dim=2), torch.ones(3, 7, dtype=torch.float64))
    assert (pool.transpose(1, 2)[~encoded.mask_BS] == 0).all()
    memory, _ = attention.prepare(encoded, source)
    assert memory.values_BSM.shape == (3, 7, 22)
    # one token: nothing to choose
    assert_close(memory.values_BSM[2], encoded.values_BSM[2, :1].expand(7, -1))


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("multi_head", {"num_heads": 3}, r"num_heads=3: .* 22"),
        (
            "multi_head",
            {"num_heads": 2, "attention_size": 5},
            r"num_heads=2: .* attention_size.* 5",
        ),
        ("structural", dict.fromkeys(TERMS, False), r"model\.attention\.options"),
    ],
)
def test_options_that_do_not_fit_are_refused(build, name, options, message):
    with pytest.raises(UsageError, match=message):
        build(name, **options)
