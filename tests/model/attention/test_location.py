import torch


def test_it_sees_the_last_weights_around_a_position(build, encoded, source, queries):
    attention = build("location", num_filters=2, radius=1)
    memory, state = attention.prepare(encoded, source)
    query = queries[0]
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
