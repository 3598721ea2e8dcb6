import pytest
import torch

from seq2seq_attn.errors import UsageError
from tests.model.attention.conftest import LENGTHS


def test_even_coordinates_are_scored_and_odd_ones_averaged(build, encoded, source, queries):
    attention = build("key_value", attention_size=7)
    memory, state = attention.prepare(encoded, source)
    attended = attention.step(queries[0], memory, state)
    for row, length in enumerate(LENGTHS):
        scores, values = [], []
        for h in encoded.values_BSM[row, :length]:
            key = torch.stack([h[m] for m in range(0, 22, 2)])
            values.append(torch.stack([h[m] for m in range(1, 22, 2)]))
            hidden = torch.tanh(attention.key_projection(key) + attention.query_projection(queries[0, row]))
            scores.append(hidden @ attention.score_weight_A)
        weights = torch.softmax(torch.stack(scores), dim=0)
        torch.testing.assert_close(attended.weights_BS[row, :length], weights)
        torch.testing.assert_close(attended.context_BM[row], weights @ torch.stack(values))


def test_values_of_odd_width_are_cut_too(build, source):
    attention = build("key_value", memory_size=5)
    assert attention.context_size == 2
    assert attention.key_projection.in_features == 3


def test_a_value_of_one_number_is_refused(build):
    with pytest.raises(UsageError, match=r"model\.encoder\.hidden_size"):
        build("key_value", memory_size=1)
