"""Attention that reads the weights of earlier steps does not learn through them."""

import pytest


@pytest.mark.parametrize(
    ("name", "projection", "options"),
    [
        ("location", "location_projection", {}),
        ("structural", "bias_projection", {}),
    ],
)
def test_no_gradient_flows_into_earlier_steps(build, encoded, source, queries, name, projection, options):
    attention = build(name, **options)
    memory, state = attention.prepare(encoded, source)
    first_query = queries[0].clone().requires_grad_()
    first = attention.step(first_query, memory, state)
    second = attention.step(queries[1], memory, first.state)
    (second.weights_BS**2).sum().backward()
    assert first_query.grad is None
    assert getattr(attention, projection).weight.grad.abs().sum() > 0
