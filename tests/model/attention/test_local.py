import math

import pytest
import torch


def oracle(attention, values, query, step, radius):
    """Weights of one sentence, position after position."""
    last = len(values) - 1
    center = min(step, last)
    if attention.position_projection is not None:
        hidden = torch.tanh(attention.position_projection(query))
        center = last * torch.sigmoid(hidden @ attention.position_weight_H).item()
    window = [s for s in range(last + 1) if abs(s - center) <= radius]
    scores = {s: query @ attention.key_projection(values[s]) * attention.scale for s in window}
    total = sum(score.exp() for score in scores.values())
    weights = torch.zeros(last + 1, dtype=torch.float64)
    for s, score in scores.items():
        weights[s] = score.exp() / total
        if attention.position_projection is not None:
            weights[s] *= math.exp(-((s - center) ** 2) / (2 * (radius / 2) ** 2))
    return weights / weights.sum()


@pytest.mark.parametrize("window", ["predictive", "monotonic"])
@pytest.mark.parametrize("radius", [1, 2, 10])
@pytest.mark.parametrize("is_scaled", [False, True])
def test_weights_are_those_of_a_loop(build, encoded, source, queries, window, radius, is_scaled):
    attention = build("local", window=window, radius=radius, is_scaled=is_scaled)
    assert attention.scale == (13**-0.5 if is_scaled else 1.0)
    memory, state = attention.prepare(encoded, source)
    for step in range(7):  # past the end of every sentence
        query = queries[step % 3]
        attended = attention.step(query, memory, state)
        state = attended.state
        for row, length in enumerate([5, 2, 1]):
            expected = oracle(attention, encoded.values_BSM[row, :length], query[row], step, radius)
            torch.testing.assert_close(attended.weights_BS[row, :length], expected)


def test_a_monotonic_window_by_hand(build, encoded, source):
    """Scores of 0: equal weights within the window, which is cut at the edges."""
    attention = build("local", window="monotonic", radius=1)
    torch.nn.init.zeros_(attention.key_projection.weight)
    memory, state = attention.prepare(encoded, source)
    found = []
    for _ in range(6):
        attended = attention.step(torch.ones(3, 13, dtype=torch.float64), memory, state)
        state = attended.state
        found.append(attended.weights_BS[0].tolist())
    third = 1 / 3
    expected = [
        [0.5, 0.5, 0, 0, 0],
        [third, third, third, 0, 0],
        [0, third, third, third, 0],
        [0, 0, third, third, third],
        [0, 0, 0, 0.5, 0.5],
        [0, 0, 0, 0.5, 0.5],
    ]
    torch.testing.assert_close(torch.tensor(found), torch.tensor(expected))


def test_a_predicted_center_by_hand(build, encoded, source):
    """Of a sentence of 5 positions with center 2, D = 4 and so sigma = 2: exp(-d^2 / 8), divided by the sum."""
    attention = build("local", radius=4)
    for parameter in attention.parameters():
        torch.nn.init.zeros_(parameter)  # sigmoid(0) = 1/2
    memory, state = attention.prepare(encoded, source)
    weights = attention.step(torch.ones(3, 13, dtype=torch.float64), memory, state).weights_BS[0]
    near, far = math.exp(-1 / 8), math.exp(-4 / 8)
    expected = torch.tensor([far, near, 1.0, near, far], dtype=torch.float64) / (1 + 2 * near + 2 * far)
    torch.testing.assert_close(weights, expected)
