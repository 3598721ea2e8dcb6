import torch

from tests.model.attention.conftest import LENGTHS


def oracle(attention, values, queries):
    """Contexts of one sentence at each step."""
    past, contexts = [torch.zeros(13, dtype=torch.float64)], []
    for query in queries:
        parts = []
        for prefix, states in (("", values), ("history_", past)):
            asked = getattr(attention, f"{prefix}query_projection")(query)
            keys = [getattr(attention, f"{prefix}key_projection")(state) for state in states]
            scores = [torch.tanh(key + asked) @ getattr(attention, f"{prefix}score_weight_A") for key in keys]
            weights = torch.softmax(torch.stack(scores), dim=0)
            parts.append(sum(weight * state for weight, state in zip(weights, states, strict=True)))
        contexts.append(torch.cat(parts))
        past.append(query)
    return contexts


def test_contexts_are_those_of_a_loop(build, encoded, source, queries):
    attention = build("self_history", attention_size=7)
    memory, state = attention.prepare(encoded, source)
    for step, query in enumerate(queries):
        attended = attention.step(query, memory, state)
        state = attended.state
        for row, length in enumerate(LENGTHS):
            expected = oracle(attention, encoded.values_BSM[row, :length], queries[:, row])[step]
            torch.testing.assert_close(attended.context_BM[row], expected)
