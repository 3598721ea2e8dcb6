import pytest
import torch


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
    for row, length in enumerate([5, 2, 1]):
        values = encoded.values_BSM[row, :length]
        patterns = torch.relu(convolve(values, attention.pattern_filters, radius))
        features = convolve(patterns, attention.feature_filters, radius) * queries[0, row]
        weights = torch.softmax(convolve(features, attention.score_filter, radius).squeeze(1), dim=0)
        torch.testing.assert_close(attended.weights_BS[row, :length], weights)
        torch.testing.assert_close(attended.context_BM[row], weights @ values)


def test_a_score_by_hand(build, source, encoded):
    """All filters 1, values and query 1: the scores count neighbors within three steps of one position."""
    attention = build("convolutional", num_filters=1, radius=1, query_size=1, memory_size=1)
    for parameter in attention.parameters():
        torch.nn.init.ones_(parameter)
    ones = torch.ones(3, 5, 1, dtype=torch.float64)
    memory, state = attention.prepare(encoded._replace(values_BSM=ones), source)
    weights = attention.step(torch.ones(3, 1, dtype=torch.float64), memory, state).weights_BS
    # values 1 1 1 1 1, then sums of three: 2 3 3 3 2, then 5 8 9 8 5, then 13 22 25 22 13
    scores = torch.tensor([13.0, 22.0, 25.0, 22.0, 13.0], dtype=torch.float64)
    torch.testing.assert_close(weights[0], torch.softmax(scores, dim=0))
