import pytest
import torch


@pytest.mark.parametrize("attention_size", [None, 5])
def test_weights_are_those_of_a_loop(build, encoded, source, queries, attention_size):
    attention = build("scaled_dot", attention_size=attention_size)
    memory, state = attention.prepare(encoded, source)
    weights_BS = attention.step(queries[0], memory, state).weights_BS
    for row, length in enumerate([5, 2, 1]):
        query = attention.query_projection(queries[0][row])
        keys = [attention.key_projection(encoded.values_BSM[row, s]) for s in range(length)]
        scores = torch.stack([query @ key / (attention_size or 13) ** 0.5 for key in keys])
        torch.testing.assert_close(weights_BS[row, :length], scores.softmax(dim=0))
        assert not weights_BS[row, length:].any()
