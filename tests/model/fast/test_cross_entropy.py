"""The chunked cross-entropy is PyTorch's, whatever the chunks."""

import pytest
import torch
from torch.testing import assert_close

from seq2seq_attn.model import speed
from seq2seq_attn.model.fast import cross_entropy as loss_module
from seq2seq_attn.model.fast.cross_entropy import chunked_cross_entropy
from seq2seq_attn.text.vocab import PAD
from tests.modules import half_precision


@pytest.fixture
def case():
    torch.manual_seed(0)
    features = torch.randn(13, 5, dtype=torch.float64, requires_grad=True)
    weight = torch.randn(17, 5, dtype=torch.float64, requires_grad=True)
    bias = torch.randn(17, dtype=torch.float64, requires_grad=True)
    return features, weight, bias, torch.randint(1, 17, (13,))


@pytest.mark.parametrize("num_tokens", [896, 900, 1500])
def test_in_bf16_the_mean_over_tokens_is_exact(case, num_tokens):
    """1 / 900 in bfloat16 is 0.25 % too large."""
    *inputs, targets = case
    features, weight, bias = (tensor.detach().float().requires_grad_() for tensor in inputs)
    with half_precision():
        loss, _ = chunked_cross_entropy(features, weight, bias, targets)
    [gradient] = torch.autograd.grad(loss, features, retain_graph=True)
    [mean_gradient] = torch.autograd.grad(loss / num_tokens, features)
    assert_close(mean_gradient * num_tokens, gradient, rtol=1e-5, atol=0.0)


@pytest.mark.parametrize("rows_per_chunk", [1, 4, 100])
@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("padding", [[], [12], [8, 9, 10, 11, 12], [0, 5, 6], range(13)])
def test_it_is_pytorchs_and_rows_whose_target_is_padding_do_not_count(
    case, monkeypatch, padding, smoothing, rows_per_chunk
):
    *inputs, targets = case
    targets[list(padding)] = PAD
    monkeypatch.setattr(loss_module, "CHUNK_CELLS", 17 * rows_per_chunk)
    loss, nll = chunked_cross_entropy(*inputs, targets, smoothing)
    gradients = torch.autograd.grad(loss * 3.0, inputs)
    logits = torch.nn.functional.linear(*inputs)
    sums = {"reduction": "sum", "ignore_index": PAD}
    expected = torch.nn.functional.cross_entropy(logits, targets, label_smoothing=smoothing, **sums)
    assert_close(loss, expected)
    assert_close(nll, torch.nn.functional.cross_entropy(logits, targets, **sums))
    assert_close(gradients, torch.autograd.grad(expected * 3.0, inputs))


@pytest.mark.parametrize(
    ("output", "is_fast"),
    [
        ("softmax", True),
        ("lexical", True),
        ("lexicon", False),
    ],
)
def test_an_output_of_linear_layers_has_it(make_model, output, is_fast):
    """`test_unroll.py` compares losses and gradients."""
    model = make_model(output={"name": output})
    assert (speed.find("cross_entropy", model.output) is not None) == is_fast


def test_no_gradient_is_made_for_a_backward_that_will_not_come(case, monkeypatch):
    def refuse(*_):
        raise AssertionError("a gradient was made")

    monkeypatch.setattr(torch.Tensor, "scatter_add_", refuse)
    with pytest.raises(AssertionError, match="a gradient was made"):
        chunked_cross_entropy(*case, 0.1)
    with torch.no_grad():
        loss, _ = chunked_cross_entropy(*case, 0.1)
    assert loss.grad_fn is None


def test_what_lies_behind_the_last_row_is_no_garbage():
    # where a processor has AMX, a product in bf16 reads past a row of odd length
    features = torch.ones(5, 3, dtype=torch.bfloat16, requires_grad=True)
    weight = torch.ones(19, 3, dtype=torch.bfloat16)
    bias = torch.zeros(19, dtype=torch.bfloat16)
    torch.use_deterministic_algorithms(True)  # which fills memory that is not initialized with NaN
    try:
        loss, _ = chunked_cross_entropy(features, weight, bias, torch.arange(4, 9))
        loss.backward()
    finally:
        torch.use_deterministic_algorithms(False)
    assert features.grad.isfinite().all()
