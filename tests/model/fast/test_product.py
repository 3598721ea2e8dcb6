import pytest
import torch
from torch.nn import functional

from seq2seq_attn.model.fast import product
from seq2seq_attn.model.fast.product import pack

LARGEST_ERROR = {
    "fp32": 1e-6,
    "bf16": 5e-3,
    "int8": 2e-2,
}


def relative(found, expected):
    return ((found - expected).norm() / expected.norm()).item()


@pytest.mark.parametrize("precision", LARGEST_ERROR)
@pytest.mark.parametrize("num_rows", [1, 2, 8, 9, 16, 17, 130])
@pytest.mark.parametrize("has_bias", [True, False])
def test_it_is_the_linear_map(precision, num_rows, has_bias):
    torch.manual_seed(num_rows)
    weight = torch.randn(53, 37)
    inputs = torch.randn(num_rows, 37)
    bias = torch.randn(53) if has_bias else None
    found = pack(weight, bias, precision)(inputs)
    assert found.dtype == torch.float32
    assert relative(found, functional.linear(inputs, weight, bias)) < LARGEST_ERROR[precision]


@pytest.mark.parametrize(
    ("precision", "layout"),
    [
        ("fp32", "_has_packed_layout"),
        ("bf16", "_has_packed_layout"),
        ("int8", "_has_packed_int8"),
    ],
)
def test_without_the_packed_layout_it_is_the_same(monkeypatch, precision, layout):
    weight = torch.randn(53, 37)
    bias = torch.randn(53)
    inputs = torch.randn(5, 37)
    packed = pack(weight, bias, precision)(inputs)
    monkeypatch.setattr(product, layout, lambda *_: False)
    largest = 1e-5 if precision == "int8" else LARGEST_ERROR[precision]
    assert relative(packed, pack(weight, bias, precision)(inputs)) < largest


def test_double_precision_stays_double():
    weight = torch.randn(5, 3, dtype=torch.float64)
    inputs = torch.randn(2, 3, dtype=torch.float64)
    products = pack(weight, None, "fp32")(inputs)
    torch.testing.assert_close(products, functional.linear(inputs, weight))


@pytest.mark.parametrize("precision", LARGEST_ERROR)
def test_an_input_of_size_0_gives_the_bias(precision):
    bias = torch.randn(5)
    multiply = pack(torch.empty(5, 0), bias, precision)
    assert torch.equal(multiply(torch.empty(2, 0)), bias.expand(2, -1))


@pytest.mark.parametrize("precision", LARGEST_ERROR)
def test_rows_do_not_mix_nor_see_what_fills_them_up(precision):
    """A row beside one a thousand times as large keeps its own scale, and a row of zeros gives the
    bias."""
    weight = torch.randn(53, 37)
    bias = torch.randn(53)
    inputs = torch.randn(13, 37)
    inputs[1] *= 1000.0
    inputs[2] = 0.0
    multiply = pack(weight, bias, precision)
    together = multiply(inputs)
    torch.testing.assert_close(together, torch.cat([multiply(row) for row in inputs.split(1)]))
    assert relative(together[2], bias) < LARGEST_ERROR[precision]


@pytest.mark.parametrize("precision", LARGEST_ERROR)
def test_the_product_keeps_the_weights_it_was_given(precision):
    weight = torch.randn(53, 37)
    inputs = torch.randn(5, 37)
    multiply = pack(weight, None, precision)
    before = multiply(inputs)
    weight.zero_()
    assert torch.equal(multiply(inputs), before)
