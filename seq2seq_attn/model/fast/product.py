"""Products with constant weights, for translation: each weight is prepared once and used at every
step.

Three kinds of arithmetic, results always in the input's dtype:

- `fp32`: the weights as they are;
- `bf16`: weight and input rounded to bfloat16;
- `int8`: integers from -127 to 127, with a scale for each row of the weight and one for each row of
  the input, computed at run time ("dynamic"). So a row's result does not depend on other rows,
  unlike with the single scale of the (deprecated) dynamic quantization of `torch.ao`.

On CPUs the weight is kept in oneDNN's layout if PyTorch offers it. The plain product converts the
weight at every call, which takes up to half the time of a product with few rows.

Shapes: N rows, I input size, O output size.
"""

from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor
from torch.nn import functional

from seq2seq_attn.runtime.device import Precision

Product = Callable[[Tensor], Tensor]
"""inputs_NI to outputs_NO"""

_EXPECTED_ROWS = 64
"""hint for oneDNN's layout; any number of rows is allowed"""
_FEW_ROWS = 2
"""up to this many rows, the overhead of the packed int8 product exceeds its gain"""
_ROW_STEP = 8
"""oneDNN compiles and caches a primitive of up to a MiB for every number of rows. As sentences
leave a batch one by one, there would be hundreds, so above this number rows are padded to a
multiple of it"""


def pack(weight_OI: Tensor, bias_O: Tensor | None, precision: Precision) -> Product:
    """The product inputs W^T + b, with its own copy of the weight if possible. A bias that is
    shorter than the outputs belongs to the first of them."""
    weight_OI = weight_OI.detach()
    if bias_O is not None:
        bias_O = functional.pad(bias_O.detach(), (0, len(weight_OI) - len(bias_O)))
    is_empty = weight_OI.shape[1] == 0  # no library accepts this
    if precision == "int8" and not is_empty:
        numbers_OI, scale_O1 = _quantize(weight_OI)
        numbers_OI = numbers_OI.to(torch.int8)
        scale_O = scale_O1.squeeze(1)
        bias_O = torch.zeros_like(scale_O) if bias_O is None else bias_O
        few = partial(_int8, numbers_OI.t(), scale_O, bias_O)
        if not _has_packed_int8():
            return few
        packed = torch.ops.onednn.qlinear_prepack(numbers_OI, [_EXPECTED_ROWS, weight_OI.shape[1]])
        zeros_O = torch.zeros(len(weight_OI), dtype=torch.int64)
        return partial(_packed_int8, (packed, scale_O, zeros_O, None), bias_O, few)
    if precision == "bf16" and not is_empty:
        weight_OI = weight_OI.bfloat16()
        bias_O = None if bias_O is None else bias_O.bfloat16()
    weight_OI = weight_OI.contiguous()
    if not is_empty and weight_OI.device.type == "cpu" and _has_packed_layout(weight_OI.dtype):
        packed = torch.ops.mkldnn._reorder_linear_weight(weight_OI, _EXPECTED_ROWS)
        return partial(_packed, packed, weight_OI.dtype, bias_O)
    return partial(_plain, weight_OI, bias_O)


def _plain(weight_OI: Tensor, bias_O: Tensor | None, inputs_NI: Tensor) -> Tensor:
    return functional.linear(inputs_NI.to(weight_OI.dtype), weight_OI, bias_O).to(inputs_NI.dtype)


def _packed(packed: Tensor, dtype: torch.dtype, bias_O: Tensor | None, inputs_NI: Tensor) -> Tensor:
    """The weight is in oneDNN's layout."""
    low_NI = _fill_up(inputs_NI.to(dtype))
    outputs: Tensor = torch.ops.mkldnn._linear_pointwise(low_NI, packed, bias_O, "none", [], "")
    return outputs[: len(inputs_NI)].to(inputs_NI.dtype)


def _int8(numbers_IO: Tensor, scale_O: Tensor, bias_O: Tensor, inputs_NI: Tensor) -> Tensor:
    numbers_NI, scale_N1 = _quantize(inputs_NI)
    whole_NO = torch._int_mm(_fill_up(numbers_NI.to(torch.int8)), numbers_IO)[: len(inputs_NI)]
    return torch.addcmul(bias_O, torch.mul(whole_NO, scale_O), scale_N1)


def _packed_int8(
    weights: tuple[Tensor, Tensor, Tensor, None], bias_O: Tensor, few: Product, inputs_NI: Tensor
) -> Tensor:
    """The same results from a weight in oneDNN's layout. Its instructions multiply unsigned by
    signed bytes, so inputs are shifted by 128, which oneDNN subtracts again. Few rows use the plain
    product, with equal results."""
    if len(inputs_NI) <= _FEW_ROWS:
        return few(inputs_NI)
    numbers_NI, scale_N1 = _quantize(inputs_NI)
    bytes_NI = _fill_up(numbers_NI.add_(128.0).to(torch.uint8))
    # the rows' scales are applied afterwards
    scaled_NO: Tensor = torch.ops.onednn.qlinear_pointwise(
        bytes_NI, 1.0, 128, *weights, 1.0, 0, torch.float32, "none", [], ""
    )
    return torch.addcmul(bias_O, scaled_NO[: len(inputs_NI)], scale_N1)


def _fill_up(inputs_NI: Tensor) -> Tensor:
    """Pad the number of rows to a multiple with rows of zeros."""
    missing = -len(inputs_NI) % _ROW_STEP
    if len(inputs_NI) <= _ROW_STEP or not missing:
        return inputs_NI
    return functional.pad(inputs_NI, (0, 0, 0, missing))


def _quantize(rows_NI: Tensor) -> tuple[Tensor, Tensor]:
    """Rows as whole numbers, and the scale of each: rows = numbers * scale."""
    largest_N1 = rows_NI.abs().amax(dim=1, keepdim=True)
    tiny = torch.finfo(rows_NI.dtype).tiny  # keeps rows of zeros
    scale_N1 = (largest_N1 / 127.0).clamp_min_(tiny)
    return torch.div(rows_NI, scale_N1).round_(), scale_N1


def _has_packed_layout(dtype: torch.dtype) -> bool:
    """Whether oneDNN is available and multiplies this dtype. PyTorch does not document these
    operators; without them the plain product does the same."""
    operators = torch.ops.mkldnn
    is_known = hasattr(operators, "_reorder_linear_weight")
    if not torch._C._has_mkldnn or not is_known or not hasattr(operators, "_linear_pointwise"):
        return False
    if dtype == torch.bfloat16:
        return bool(operators._is_mkldnn_bf16_supported())
    return dtype == torch.float32


def _has_packed_int8() -> bool:
    """Whether oneDNN is available and the processor has its byte instructions, without which it is
    slower than `_int_mm`. The operators are undocumented, as above."""
    operators = torch.ops.onednn
    is_known = hasattr(operators, "qlinear_prepack") and hasattr(operators, "qlinear_pointwise")
    if not torch._C._has_mkldnn or not is_known or not hasattr(torch.cpu, "_is_vnni_supported"):
        return False
    return bool(torch.cpu._is_vnni_supported())
