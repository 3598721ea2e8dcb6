"""The contract of normalizers, asked of every file in the folder: scores in, a distribution over
real positions out."""

import pytest
import torch

from seq2seq_attn.model.variants import find_build
from tests.contract.chosen import variants


def make_mask():
    return torch.arange(7) < torch.tensor([[7], [3], [1], [5]])


@pytest.fixture(params=variants("normalizer"))
def normalizer(request):
    return find_build("normalizer", request.param, function="weights")


def scores(dtype=torch.float64, scale=1.0):
    return (
        torch.randn(
            4, 7, dtype=dtype, generator=torch.Generator(torch.get_default_device()).manual_seed(3)
        )
        * scale
    )


@pytest.mark.parametrize("scale", [1e-4, 1.0, 1e4])
def test_weights_are_a_distribution_over_real_positions(normalizer, scale):
    weights = normalizer(scores(scale=scale), make_mask())
    assert (weights >= 0.0).all()
    assert (weights[~make_mask()] == 0.0).all()
    torch.testing.assert_close(weights.sum(dim=1), torch.ones(4, dtype=torch.float64))


@pytest.mark.parametrize("garbage", [float("nan"), float("inf"), -1e30])
def test_padding_is_never_read(normalizer, garbage):
    clean = normalizer(scores(), make_mask())
    assert torch.equal(normalizer(scores().masked_fill(~make_mask(), garbage), make_mask()), clean)


@pytest.mark.parametrize("score", [float("nan"), float("inf")])
def test_a_score_that_is_not_finite_gives_weights_that_are_not_numbers(normalizer, score):
    broken = scores()
    broken[0, 2] = score
    weights = normalizer(
        broken, make_mask()
    )  # so that the update is skipped, not the training ended
    assert weights[0].isnan().any()
    assert torch.equal(weights[1:], normalizer(scores(), make_mask())[1:])


def test_a_row_does_not_depend_on_its_padding(normalizer):
    together = normalizer(scores(), make_mask())
    for row, length in enumerate(make_mask().sum(dim=1).tolist()):
        alone = normalizer(scores()[row : row + 1, :length], make_mask()[row : row + 1, :length])
        torch.testing.assert_close(together[row : row + 1, :length], alone)


def test_gradcheck(normalizer):
    assert torch.autograd.gradcheck(
        lambda s: normalizer(s, make_mask()), (scores(scale=2.0).requires_grad_(),), nondet_tol=1e-9
    )


def test_half_precision_gives_single_precision(normalizer):
    assert normalizer(scores(torch.bfloat16), make_mask()).dtype == torch.float32


def test_a_constant_added_to_all_scores_changes_nothing(normalizer):
    torch.testing.assert_close(
        normalizer(scores() + 5.0, make_mask()), normalizer(scores(), make_mask())
    )


def test_a_higher_score_has_no_lower_weight(normalizer):
    found = normalizer(scores(), make_mask())
    order = scores().masked_fill(~make_mask(), -torch.inf).argsort(dim=1)
    assert (found.gather(1, order).diff(dim=1) >= 0.0).all()
