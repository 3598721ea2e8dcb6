import torch


def test_it_remembers_more_than_the_last_step(build, encoded, source, queries):
    attention = build("coverage", coverage_size=3)
    memory, state = attention.prepare(encoded, source)
    coverage = torch.zeros(5, 3, dtype=torch.float64)
    for query in queries:
        hidden = attention.query_projection(query[0]) + memory.keys_BSA[0] + attention.coverage_projection(coverage)
        expected = torch.softmax(torch.tanh(hidden) @ attention.score_weight_A, dim=0)
        attended = attention.step(query, memory, state)
        torch.testing.assert_close(attended.weights_BS[0], expected)
        state = attended.state
        coverage = torch.stack(
            [
                attention.update(torch.cat([expected[j : j + 1], memory.values_BSM[0, j], query[0]]), coverage[j])
                for j in range(5)
            ]
        )
    torch.testing.assert_close(state.coverage_BSD[0], coverage)
