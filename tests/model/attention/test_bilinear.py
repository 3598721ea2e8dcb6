import pytest
import torch


@pytest.mark.parametrize("is_scaled", [False, True])
def test_weights_are_those_of_a_loop(build, encoded, source, queries, is_scaled):
    attention = build("bilinear", is_scaled=is_scaled)
    memory, state = attention.prepare(encoded, source)
    weights_BS = attention.step(queries[0], memory, state).weights_BS
    for row, length in enumerate([5, 2, 1]):
        keys = [attention.key_projection(encoded.values_BSM[row, s]) for s in range(length)]
        scores = torch.stack([queries[0][row] @ key / (13**0.5 if is_scaled else 1.0) for key in keys])
        torch.testing.assert_close(weights_BS[row, :length], scores.softmax(dim=0))
        assert not weights_BS[row, length:].any()
