import pytest
import torch


def test_it_remembers_more_than_the_last_step(build, encoded, source, queries):
    attention = build("coverage", coverage_size=3)
    memory, state = attention.prepare(encoded, source)
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
    torch.testing.assert_close(state[0], coverage)


@pytest.mark.parametrize("fertility", [True, False])
def test_linguistic_coverage_adds_up_weights_by_fertility(build, encoded, source, queries, fertility):
    options = {"max_fertility": 3.0} if fertility else {"fertility": False}
    attention = build("coverage", kind="linguistic", **options)
    memory, state = attention.prepare(encoded, source)
    covered = [0.0] * 5
    for query in queries:
        scores = []
        for j in range(5):
            hidden = attention.query_projection(query[0]) + attention.key_projection(encoded.values_BSM[0, j])
            hidden = hidden + attention.coverage_projection.weight[:, 0] * covered[j]
            scores.append(torch.tanh(hidden) @ attention.score_weight_A)
        attended = attention.step(query, memory, state)
        state = attended.state
        weights = torch.softmax(torch.stack(scores), dim=0)
        torch.testing.assert_close(attended.weights_BS[0], weights)
        for j in range(5):
            phi = 1.0
            if fertility:
                phi = 3.0 * torch.sigmoid(attention.fertility_projection.weight[0] @ encoded.values_BSM[0, j]).item()
            covered[j] += weights[j].item() / phi


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
