"""Each normalizer: values by hand, and equality with the `entmax` package."""

import entmax
import pytest
import torch
from torch.testing import assert_close

from seq2seq_attn.model.normalizer import entmax15, sparsemax

ALL = torch.ones(1, 3, dtype=torch.bool)


@pytest.mark.parametrize("normalizer", [sparsemax.weights, entmax15.weights])
def test_a_score_on_the_threshold_has_no_gradient(normalizer):
    """Its weight is 0, so it is outside the support; in bf16, scores lie on a grid and meet the
    threshold."""
    gap = 1.0 if normalizer is sparsemax.weights else 2.0
    scores = torch.tensor([[gap, 0.0, -3.0]], dtype=torch.float64, requires_grad=True)
    weights = normalizer(scores, ALL)
    assert weights.tolist() == [[1.0, 0.0, 0.0]]
    [gradient] = torch.autograd.grad((weights * torch.tensor([[1.0, 2.0, 3.0]])).sum(), scores)
    assert gradient.tolist() == [[0.0, 0.0, 0.0]]


@pytest.mark.parametrize(
    ("normalizer", "theirs"),
    [
        (sparsemax, entmax.sparsemax),
        (entmax15, entmax.entmax15),
    ],
)
def test_equals_the_entmax_package(normalizer, theirs):
    scores = (3.0 * torch.randn(50, 17, dtype=torch.float64)).requires_grad_()
    upstream = torch.randn(50, 17, dtype=torch.float64)
    weights = normalizer.weights(scores, torch.ones(50, 17, dtype=torch.bool))
    expected = theirs(scores, dim=1)
    assert_close(weights, expected)
    [gradient] = torch.autograd.grad(weights, scores, upstream)
    [expected_gradient] = torch.autograd.grad(expected, scores, upstream)
    assert_close(gradient, expected_gradient)
