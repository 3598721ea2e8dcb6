import pytest
import torch
from torch.testing import assert_close

from seq2seq_attn.model.layers import select_rows
from tests.model.attention.conftest import LENGTHS, additive_scores


def test_search_takes_the_best_position(build, encoded, source, queries):
    attention = build("hard").eval()
    memory, state = attention.prepare(encoded, source)
    chosen = set()
    for query in queries:
        attended = attention.step(query, memory, state)
        for row, length in enumerate(LENGTHS):
            scores = additive_scores(attention, query[row], encoded.values_BSM[row, :length])
            best = scores.argmax().item()
            assert attended.weights_BS[row].tolist() == [float(s == best) for s in range(5)]
            assert_close(attended.context_BM[row], encoded.values_BSM[row, best])
            chosen.add((row, best))
    assert len(chosen) > 3  # it does choose


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"estimator": "reinforce"},
    ],
)
def test_training_draws_from_the_softmax_of_the_scores(build, encoded, source, queries, options):
    """10,000 draws of the first sentence: each share lies within 4 standard errors."""
    attention = build("hard", **options)
    num_draws = 10_000
    rows = torch.zeros(num_draws, dtype=torch.int64)
    memory, state = attention.prepare(select_rows(encoded, rows), source)
    torch.manual_seed(3)
    with torch.no_grad():
        attended = attention.step(queries[0, :1].expand(num_draws, -1), memory, state)
        scores = additive_scores(attention, queries[0, 0], encoded.values_BSM[0])
        expected = scores.softmax(dim=0)
    is_drawn = (attended.context_BM.unsqueeze(1) == encoded.values_BSM[:1]).all(dim=2)
    assert (is_drawn.sum(dim=1) == 1).all()
    error = (expected * (1 - expected) / num_draws).sqrt()
    assert ((is_drawn.double().mean(dim=0) - expected).abs() < 4 * error).all()
    if options:
        assert_close(attended.weights_BS[0], expected)
        drawn_B = expected.expand(num_draws, -1)[is_drawn]
        assert_close(attended.extra.log_prob_B.exp(), drawn_B)
    else:
        assert torch.equal(attended.weights_BS, is_drawn.double())


@pytest.mark.parametrize("temperature", [0.5, 2.0])
def test_the_gradient_is_that_of_the_relaxed_sample(build, encoded, source, queries, temperature):
    attention = build("hard", temperature=temperature)
    torch.manual_seed(4)
    uniform = torch.rand(3, 5, dtype=torch.float64)
    weighing = torch.randn(5, dtype=torch.float64)
    expected = torch.zeros(3, 13, dtype=torch.float64)
    for row, length in enumerate(LENGTHS):
        query = queries[0, row].clone().requires_grad_()
        scores = additive_scores(attention, query, encoded.values_BSM[row, :length])
        gumbel = -(-uniform[row, :length].log()).log()
        relaxed = torch.softmax((scores + gumbel) / temperature, dim=0)
        [expected[row]] = torch.autograd.grad(relaxed @ weighing[:length], query)
    query = queries[0].clone().requires_grad_()
    memory, state = attention.prepare(encoded, source)
    torch.manual_seed(4)
    weights = attention.step(query, memory, state).weights_BS
    [gradient] = torch.autograd.grad((weights * weighing).sum(), query)
    assert_close(gradient, expected)


def test_reinforce_lets_no_gradient_of_the_context_or_the_baseline_reach_the_scores(
    build, encoded, source, queries
):
    attention = build("hard", estimator="reinforce")
    query = queries[0].clone().requires_grad_()
    memory, state = attention.prepare(encoded, source)
    attended = attention.step(query, memory, state)
    assert not attended.context_BM.requires_grad
    attended.extra.baseline_B.sum().backward()
    assert query.grad is None
    assert attention.baseline.weight.grad.abs().sum() > 0


def test_with_reinforce_the_weights_of_search_are_those_of_training(
    build, encoded, source, queries
):
    """So that an output which reads them, such as `copy`, finds in search what it has learned
    from."""
    attention = build("hard", estimator="reinforce")
    memory, state = attention.prepare(encoded, source)
    of_training = attention.train().step(queries[0], memory, state).weights_BS
    assert torch.equal(attention.eval().step(queries[0], memory, state).weights_BS, of_training)
