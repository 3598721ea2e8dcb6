import math

import pytest
import torch

from tests.model.attention.conftest import LENGTHS


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
        for row, length in enumerate(LENGTHS):
            expected = oracle(attention, encoded.values_BSM[row, :length], query[row], step, radius)
            torch.testing.assert_close(attended.weights_BS[row, :length], expected)
