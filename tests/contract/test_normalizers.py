"""The contract of normalizers, asked of every file in the folder: scores in, a distribution over
real positions out."""

import pytest
import torch
from torch.testing import assert_close

from seq2seq_attn.model.variants import find_build
from tests.contract.chosen import variants


@pytest.fixture(params=variants("normalizer"))
def normalizer(request):
    return find_build("normalizer", request.param, function="weights")


@pytest.fixture
def mask():
    return torch.arange(7) < torch.tensor([[7], [3], [1], [5]])


@pytest.fixture
def scores():
    generator = torch.Generator(torch.get_default_device()).manual_seed(3)
    return torch.randn(4, 7, dtype=torch.float64, generator=generator)


@pytest.mark.parametrize("scale", [1e-4, 1.0, 1e4])
def test_weights_are_a_distribution_over_real_positions(normalizer, scores, mask, scale):
    weights = normalizer(scores * scale, mask)
    assert (weights >= 0.0).all()
    assert (weights[~mask] == 0.0).all()
    assert_close(weights.sum(dim=1), torch.ones(4, dtype=torch.float64))


@pytest.mark.parametrize("garbage", [float("nan"), float("inf"), -1e30])
def test_padding_is_never_read(normalizer, scores, mask, garbage):
    weights = normalizer(scores.masked_fill(~mask, garbage), mask)
    assert torch.equal(weights, normalizer(scores, mask))


@pytest.mark.parametrize("score", [float("nan"), float("inf")])
def test_a_score_that_is_not_finite_gives_weights_that_are_not_numbers(
    normalizer, scores, mask, score
):
    """So that the update is skipped, not the training ended."""
    clean = normalizer(scores, mask)
    scores[0, 2] = score
    weights = normalizer(scores, mask)
    assert weights[0].isnan().any()
    assert torch.equal(weights[1:], clean[1:])


def test_a_row_does_not_depend_on_its_padding(normalizer, scores, mask):
    together = normalizer(scores, mask)
    for row, length in enumerate((7, 3, 1, 5)):
        alone = normalizer(scores[row : row + 1, :length], mask[row : row + 1, :length])
        assert_close(together[row, :length], alone[0])


def test_gradcheck(normalizer, scores, mask):
    scores = (2.0 * scores).requires_grad_()
    assert torch.autograd.gradcheck(normalizer, (scores, mask), nondet_tol=1e-9)


def test_half_precision_gives_single_precision(normalizer, scores, mask):
    assert normalizer(scores.bfloat16(), mask).dtype == torch.float32


def test_a_constant_added_to_all_scores_changes_nothing(normalizer, scores, mask):
    assert_close(normalizer(scores + 5.0, mask), normalizer(scores, mask))


def test_a_higher_score_has_no_lower_weight(normalizer, scores, mask):
    order = scores.masked_fill(~mask, -torch.inf).argsort(dim=1)
    assert (normalizer(scores, mask).gather(1, order).diff(dim=1) >= 0.0).all()
