import pytest
import torch

from seq2seq_attn.errors import UsageError


@pytest.mark.parametrize("score", ["additive", "scaled_dot"])
def test_heads_attend_on_their_own(build, encoded, source, queries, score):
    attention = build("multi_head", num_heads=2, score=score, attention_size=6)
    memory, state = attention.prepare(encoded, source)
    query = queries[0]
    attended = attention.step(query, memory, state)
    contexts, weights = [], []
    for head in range(2):
        rows, columns = slice(3 * head, 3 * head + 3), slice(11 * head, 11 * head + 11)
        q = attention.query_projection(query[0])[rows]
        keys = attention.key_projection(encoded.values_BSM[0])[:, rows]
        if score == "additive":
            scores = torch.tanh(keys + q) @ attention.score_weight_Na[head]
        else:
            scores = keys @ q / 3**0.5
        weights.append(torch.softmax(scores, dim=0))
        contexts.append(weights[-1] @ attention.value_projection(encoded.values_BSM[0])[:, columns])
    torch.testing.assert_close(attended.context_BM[0], torch.cat(contexts))
    torch.testing.assert_close(attended.weights_BS[0], (weights[0] + weights[1]) / 2)
    torch.testing.assert_close(attended.extra.weights_BNS[0], torch.stack(weights))


def test_heads_that_do_not_fit_are_refused(build):
    with pytest.raises(UsageError, match=r"num_heads=3: .* 22"):
        build("multi_head", num_heads=3)
    with pytest.raises(UsageError, match=r"num_heads=2: .* attention_size.* 5"):
        build("multi_head", num_heads=2, attention_size=5)
