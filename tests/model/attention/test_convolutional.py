import pytest
import torch

from tests.model.attention.conftest import LENGTHS


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
def test_weights_are_those_of_a_loop(build, encoded, source, queries, radius):
    attention = build("convolutional", num_filters=3, radius=radius)
    memory, state = attention.prepare(encoded, source)
    attended = attention.step(queries[0], memory, state)
    for row, length in enumerate(LENGTHS):
        values = encoded.values_BSM[row, :length]
        patterns = torch.relu(convolve(values, attention.pattern_filters, radius))
        features = convolve(patterns, attention.feature_filters, radius) * queries[0, row]
        weights = torch.softmax(convolve(features, attention.score_filter, radius).squeeze(1), dim=0)
        torch.testing.assert_close(attended.weights_BS[row, :length], weights)
        torch.testing.assert_close(attended.context_BM[row], weights @ values)
