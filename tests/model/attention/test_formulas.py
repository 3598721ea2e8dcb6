"""Attention variants against their formulas, sentence by sentence and position by position."""

import itertools
import math

import pytest
import torch

from seq2seq_attn.errors import UsageError
from tests.model.attention.conftest import LENGTHS


def softmax(scores):
    return torch.softmax(torch.stack(scores), dim=0)


@pytest.fixture
def check(encoded, source, queries):
    """Asks an attention step by step, in three sentences. An oracle gives for one sentence, from
    its values and the queries, the weights of each step, alone or with the context."""

    def check(attention, oracle, asked=queries):
        memory, state = attention.prepare(encoded, source)
        sentences = [encoded.values_BSM[row, :length] for row, length in enumerate(LENGTHS)]
        expected = [list(oracle(values, asked[:, row])) for row, values in enumerate(sentences)]
        for step, query in enumerate(asked):
            attended = attention.step(query, memory, state)
            state = attended.state
            for row, values in enumerate(sentences):
                found = expected[row][step]
                weights, context = found if isinstance(found, tuple) else (found, found @ values)
                torch.testing.assert_close(attended.weights_BS[row, : len(values)], weights)
                assert not attended.weights_BS[row, len(values) :].any()
                torch.testing.assert_close(attended.context_BM[row], context)
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
    project_query, project_key = (
        getattr(attention, f"{side}_projection", torch.nn.Identity()) for side in ("query", "key")
    )

    def oracle(values, queries):
        return [
            softmax([project_query(query) @ project_key(h) / divisor for h in values])
            for query in queries
        ]

    check(
        attention,
        oracle,
        torch.nn.functional.pad(queries, (0, 9), value=0.5) if name == "dot" else queries,
    )


def convolve(inputs, conv, radius):
    """Filters over [S, C], position after position; nothing lies past the edges."""
    outputs = []
    for s in range(len(inputs)):
        total = torch.zeros(conv.out_channels, dtype=inputs.dtype)
        for offset in range(-radius, radius + 1):
            if 0 <= s + offset < len(inputs):
                total = total + conv.weight[:, :, offset + radius] @ inputs[s + offset]
        outputs.append(total)
    return torch.stack(outputs)


@pytest.mark.parametrize("radius", [1, 2, 6])
def test_convolutional(build, check, radius):
    attention = build("convolutional", num_filters=3, radius=radius)

    def oracle(values, queries):
        patterns = torch.relu(convolve(values, attention.pattern_filters, radius))
        for query in queries:
            features = convolve(patterns, attention.feature_filters, radius) * query
            yield torch.softmax(
                convolve(features, attention.score_filter, radius).squeeze(1), dim=0
            )

    check(attention, oracle)


@pytest.mark.parametrize("window", ["predictive", "monotonic"])
@pytest.mark.parametrize("radius", [1, 2, 10])
@pytest.mark.parametrize("is_scaled", [False, True])
def test_local(build, check, queries, window, radius, is_scaled):
    attention = build("local", window=window, radius=radius, is_scaled=is_scaled)
    assert attention.scale == (13**-0.5 if is_scaled else 1.0)

    def oracle(values, queries):
        last = len(values) - 1
        for step, query in enumerate(queries):
            center = min(step, last)
            if attention.position_projection is not None:
                hidden = torch.tanh(attention.position_projection(query))
                center = last * torch.sigmoid(hidden @ attention.position_weight_H).item()
            window = [s for s in range(last + 1) if abs(s - center) <= radius]
            scores = {
                s: query @ attention.key_projection(values[s]) * attention.scale for s in window
            }
            total = sum(score.exp() for score in scores.values())
            weights = torch.zeros(last + 1, dtype=torch.float64)
            for s, score in scores.items():
                weights[s] = score.exp() / total
                if attention.position_projection is not None:
                    weights[s] *= math.exp(-((s - center) ** 2) / (2 * (radius / 2) ** 2))
            yield weights / weights.sum()

    check(attention, oracle, queries[[0, 1, 2, 0, 1, 2, 0]])  # past the end of every sentence


@pytest.mark.parametrize("score", ["additive", "scaled_dot"])
def test_heads_attend_on_their_own(build, encoded, source, queries, score):
    attention = build("multi_head", num_heads=2, score=score, attention_size=6)
    memory, state = attention.prepare(encoded, source)
    query = queries[0]
    attended = attention.step(query, memory, state)
    contexts = []
    weights = []
    for head in range(2):
        rows = slice(3 * head, 3 * head + 3)
        columns = slice(11 * head, 11 * head + 11)
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
    torch.testing.assert_close(attended.extra.weights_BNS[0], torch.stack(weights))


# ---- additive scores ----


def test_key_value_scores_even_coordinates_and_averages_odd_ones(build, check):
    attention = build("key_value", attention_size=7)

    def oracle(values, queries):
        for query in queries:
            hidden = [
                attention.key_projection(h[0::2]) + attention.query_projection(query)
                for h in values
            ]
            weights = softmax([torch.tanh(one) @ attention.score_weight_A for one in hidden])
            yield weights, weights @ values[:, 1::2]

    check(attention, oracle)


def test_values_of_odd_width_are_cut_too(build):
    attention = build("key_value", memory_size=5)
    assert attention.context_size == 2
    assert attention.key_projection.in_features == 3


def test_self_history_attends_to_past_queries_too(build, check):
    attention = build("self_history", attention_size=7)

    def oracle(values, queries):
        past = [torch.zeros(13, dtype=torch.float64)]
        for query in queries:
            weights = {}
            contexts = []
            for prefix, states in (("", list(values)), ("history_", past)):
                asked = getattr(attention, f"{prefix}query_projection")(query)
                keys = [getattr(attention, f"{prefix}key_projection")(state) for state in states]
                scores = [
                    torch.tanh(key + asked) @ getattr(attention, f"{prefix}score_weight_A")
                    for key in keys
                ]
                weights[prefix] = softmax(scores)
                contexts.append(weights[prefix] @ torch.stack(states))
            yield weights[""], torch.cat(contexts)
            past.append(query)

    check(attention, oracle)


def test_location_sees_the_last_weights_around_a_position(build, check):
    attention = build("location", num_filters=2, radius=1)

    def oracle(values, queries):
        weights = torch.zeros(len(values), dtype=torch.float64)
        for query in queries:
            scores = []
            for j, h in enumerate(values):
                seen = [
                    weights[k] if 0 <= k < len(values) else weights.new_zeros(())
                    for k in (j - 1, j, j + 1)
                ]
                features = (attention.filters.weight.squeeze(1) * torch.stack(seen)).sum(dim=1)
                hidden = attention.query_projection(query) + attention.key_projection(h)
                hidden = hidden + attention.location_projection(features)
                scores.append(torch.tanh(hidden) @ attention.score_weight_A)
            weights = softmax(scores).detach()
            yield weights

    check(attention, oracle)


TERMS = ("position", "markov", "fertility")


@pytest.mark.parametrize(
    "terms", [t for n in (1, 2, 3) for t in itertools.combinations(TERMS, n)], ids="-".join
)
def test_structural_biases(build, check, terms):
    attention = build(
        "structural", attention_size=7, radius=2, **{term: term in terms for term in TERMS}
    )
    radius = 2

    def oracle(values, queries):
        length = len(values)
        history = []
        for j, query in enumerate(queries, start=1):
            scores = []
            for i in range(1, length + 1):
                features = []
                if "position" in terms:
                    features += [math.log(1 + j), math.log(1 + i), math.log(1 + length)]
                near = [k - 1 for k in range(i - radius, i + radius + 1)]
                if "markov" in terms:
                    features += [
                        history[-1][k].item() if history and 0 <= k < length else 0.0 for k in near
                    ]
                if "fertility" in terms:
                    features += [
                        sum(w[k].item() for w in history) if 0 <= k < length else 0.0 for k in near
                    ]
                hidden = attention.key_projection(values[i - 1]) + attention.query_projection(query)
                hidden = hidden + attention.bias_projection.weight @ torch.tensor(
                    features, dtype=torch.float64
                )
                scores.append(torch.tanh(hidden) @ attention.score_weight_A)
            history.append(softmax(scores))
        return history

    check(attention, oracle)


@pytest.mark.parametrize(
    ("name", "projection"), [("location", "location_projection"), ("structural", "bias_projection")]
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
    last = {}

    def oracle(values, queries):
        coverage = torch.zeros(len(values), 3, dtype=torch.float64)
        for query in queries:
            hidden = attention.query_projection(query) + attention.key_projection(values)
            weights = torch.softmax(
                torch.tanh(hidden + attention.coverage_projection(coverage))
                @ attention.score_weight_A,
                dim=0,
            )
            yield weights
            inputs = [
                torch.cat([weight[None], value, query])
                for weight, value in zip(weights, values, strict=True)
            ]
            coverage = attention.update(torch.stack(inputs), coverage)
            last[len(values)] = coverage

    state = check(attention, oracle)
    for row, length in enumerate(LENGTHS):
        torch.testing.assert_close(state[row, :length], last[length])


@pytest.mark.parametrize("fertility", [True, False])
def test_linguistic_coverage_adds_up_weights_by_fertility(build, check, fertility):
    options = {"max_fertility": 3.0} if fertility else {"fertility": False}
    attention = build("coverage", kind="linguistic", **options)

    def oracle(values, queries):
        covered = [0.0] * len(values)
        for query in queries:
            scores = []
            for j, h in enumerate(values):
                hidden = attention.query_projection(query) + attention.key_projection(h)
                hidden = hidden + attention.coverage_projection.weight[:, 0] * covered[j]
                scores.append(torch.tanh(hidden) @ attention.score_weight_A)
            weights = softmax(scores)
            yield weights
            for j, h in enumerate(values):
                phi = (
                    3.0 * torch.sigmoid(attention.fertility_projection.weight[0] @ h).item()
                    if fertility
                    else 1.0
                )
                covered[j] += weights[j].item() / phi

    check(attention, oracle)


def test_a_fertility_is_not_below_a_thousandth_of_the_largest(build, encoded, source, queries):
    """Scores of 0, so equal weights: a step over five positions adds (1 / 5) / (2 / 1000)."""
    attention = build("coverage", kind="linguistic")
    for parameter in attention.parameters():
        torch.nn.init.zeros_(parameter)
    torch.nn.init.constant_(attention.fertility_projection.weight, -50.0)
    memory, state = attention.prepare(encoded._replace(values_BSM=encoded.values_BSM.abs()), source)
    state = attention.step(queries[0], memory, state).state
    torch.testing.assert_close(state[0], torch.full((5, 1), 100.0, dtype=torch.float64))


def test_neural_coverage_is_not_rounded_to_bf16(build, encoded, source, queries):
    """With an update gate of sigmoid(7), which is 1 in bf16, it would never change."""
    attention = build("coverage", kind="neural").float()
    torch.nn.init.constant_(attention.update.bias_hh.chunk(3)[1], 7.0)
    encoded = encoded._replace(values_BSM=encoded.values_BSM.float())
    found = []
    for is_bf16 in (False, True):
        with torch.no_grad(), torch.autocast("cpu", dtype=torch.bfloat16, enabled=is_bf16):
            memory, state = attention.prepare(encoded, source)
            for query in queries.repeat(20, 1, 1):
                state = attention.step(query.float(), memory, state).state
        found.append(state)
    assert (found[1] - found[0]).norm() < 0.02 * found[0].norm()


# ---- slots, and what is refused ----


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
