import itertools
import math

import pytest
import torch

from seq2seq_attn.errors import UsageError
from tests.model.attention.conftest import LENGTHS

TERMS = ("position", "markov", "fertility")


def oracle(attention, values, queries, terms, radius):
    """Weights of one sentence at each step, position after position."""
    length, history = len(values), []
    for j, query in enumerate(queries, start=1):
        scores = []
        for i in range(1, length + 1):
            features = []
            if "position" in terms:
                features += [math.log(1 + j), math.log(1 + i), math.log(1 + length)]
            near = [k - 1 for k in range(i - radius, i + radius + 1)]
            if "markov" in terms:
                features += [history[-1][k].item() if history and 0 <= k < length else 0.0 for k in near]
            if "fertility" in terms:
                features += [sum(w[k].item() for w in history) if 0 <= k < length else 0.0 for k in near]
            hidden = attention.key_projection(values[i - 1]) + attention.query_projection(query)
            hidden = hidden + attention.bias_projection.weight @ torch.tensor(features, dtype=torch.float64)
            scores.append(torch.tanh(hidden) @ attention.score_weight_A)
        history.append(torch.softmax(torch.stack(scores), dim=0))
    return history


@pytest.mark.parametrize("terms", [t for n in (1, 2, 3) for t in itertools.combinations(TERMS, n)], ids="-".join)
def test_weights_are_those_of_a_loop(build, encoded, source, queries, terms):
    attention = build("structural", attention_size=7, radius=2, **{term: term in terms for term in TERMS})
    memory, state = attention.prepare(encoded, source)
    expected = [
        oracle(attention, encoded.values_BSM[row, :length], queries[:, row], terms, 2)
        for row, length in enumerate(LENGTHS)
    ]
    for step, query in enumerate(queries):
        attended = attention.step(query, memory, state)
        state = attended.state
        for row, length in enumerate(LENGTHS):
            torch.testing.assert_close(attended.weights_BS[row, :length], expected[row][step])


def test_no_term_at_all_is_refused(build):
    with pytest.raises(UsageError, match=r"model\.attention\.options"):
        build("structural", position=False, markov=False, fertility=False)
