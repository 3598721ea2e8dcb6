"""Each normalizer: values by hand, and equality with the `entmax` package."""

import entmax
import pytest
import torch

from seq2seq_attn.model.normalizer import entmax15, softmax, sparsemax

ALL = torch.ones(1, 3, dtype=torch.bool)


def test_values_by_hand():
    scores = torch.tensor([[1.0, 0.5, -1.0]], dtype=torch.float64)
    # support {1, 0.5}: tau = (1.5 - 1) / 2
    torch.testing.assert_close(
        sparsemax.weights(scores, ALL), torch.tensor([[0.75, 0.25, 0.0]]).double()
    )
    expected = torch.tensor([[1.0, 0.5, -1.0]]).double().exp()
    torch.testing.assert_close(softmax.weights(scores, ALL), expected / expected.sum())
    # two scores at distance d: p = (1/2 + d sqrt(8 - d^2) / 8, ...), here d = 1
    two = entmax15.weights(torch.tensor([[1.0, 0.0]], dtype=torch.float64), ALL[:, :2])
    half = 7.0**0.5 / 8.0
    torch.testing.assert_close(two, torch.tensor([[0.5 + half, 0.5 - half]], dtype=torch.float64))


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


@pytest.mark.parametrize("name", ["sparsemax", "entmax15"])
def test_equals_the_entmax_package(name):
    ours = {"sparsemax": sparsemax.weights, "entmax15": entmax15.weights}[name]
    scores = (3.0 * torch.randn(50, 17, dtype=torch.float64)).requires_grad_()
    upstream = torch.randn(50, 17, dtype=torch.float64)
    mask = torch.ones(50, 17, dtype=torch.bool)
    found = ours(scores, mask)
    expected = getattr(entmax, name)(scores, dim=1)
    torch.testing.assert_close(found, expected)
    gradients = [
        torch.autograd.grad((weights * upstream).sum(), scores)[0] for weights in (found, expected)
    ]
    torch.testing.assert_close(gradients[0], gradients[1])
