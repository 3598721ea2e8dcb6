"""Matrix products with constant weights, for translation: each weight is prepared once and used at
every step.

There are three kinds of arithmetic. Results always have the dtype of the input.

- `fp32` uses the weights as they are;
- `bf16` rounds weight and input to bfloat16;
- `int8` uses integers from -127 to 127, with a scale for each row of the weight and a scale for
  each row of the input, which is computed at run time ("dynamic"). So the result of a row does not
  depend on other rows, unlike with the single scale of the (deprecated) dynamic quantization of
  `torch.ao`.

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
"""a function of inputs_NI that returns outputs_NO"""

_EXPECTED_ROWS = 64
"""hint for oneDNN's layout; any number of rows is allowed"""
_FEW_ROWS = 2
"""largest number of rows for which the overhead of the packed int8 product exceeds its gain"""
_ROW_STEP = 8
"""number of rows above which rows are padded to a multiple of this number. oneDNN compiles and
caches a primitive of up to a MiB for every number of rows, and as sentences leave a batch one by
one, there would be hundreds of primitives"""


def pack(weight_OI: Tensor, bias_O: Tensor | None, precision: Precision) -> Product:
    """Return a function that computes inputs W^T + b. It holds a copy of the weight in a faster
    layout if possible. A bias that is shorter than the outputs is added to the first outputs."""
    weight_OI = weight_OI.detach()
    if bias_O is not None:
        bias_O = functional.pad(bias_O.detach(), (0, len(weight_OI) - len(bias_O)))
    is_empty = weight_OI.shape[1] == 0  # only the plain product accepts this
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
    """Compute a product with a weight in oneDNN's layout."""
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
    """Compute the results of `_int8` with a weight in oneDNN's layout. oneDNN's instructions
    multiply unsigned bytes by signed bytes, so inputs are shifted by 128, which oneDNN subtracts
    again. A few rows use the plain product, whose results are equal."""
    if len(inputs_NI) <= _FEW_ROWS:
        return few(inputs_NI)
    numbers_NI, scale_N1 = _quantize(inputs_NI)
    bytes_NI = _fill_up(numbers_NI.add_(128.0).to(torch.uint8))
    # The scales of the rows are applied below.
    scaled_NO: Tensor = torch.ops.onednn.qlinear_pointwise(
        bytes_NI, 1.0, 128, *weights, 1.0, 0, torch.float32, "none", [], ""
    )
    return torch.addcmul(bias_O, scaled_NO[: len(inputs_NI)], scale_N1)


def _fill_up(inputs_NI: Tensor) -> Tensor:
    """Add rows of zeros, so that the number of rows is a multiple of `_ROW_STEP`."""
    missing = -len(inputs_NI) % _ROW_STEP
    if len(inputs_NI) <= _ROW_STEP or not missing:
        return inputs_NI
    return functional.pad(inputs_NI, (0, 0, 0, missing))


def _quantize(rows_NI: Tensor) -> tuple[Tensor, Tensor]:
    """Return the rows as whole numbers, and the scale of each row: rows = numbers * scale."""
    largest_N1 = rows_NI.abs().amax(dim=1, keepdim=True)
    tiny = torch.finfo(rows_NI.dtype).tiny  # avoids a division by 0 in rows of zeros
    scale_N1 = (largest_N1 / 127.0).clamp_min_(tiny)
    return torch.div(rows_NI, scale_N1).round_(), scale_N1


def _has_packed_layout(dtype: torch.dtype) -> bool:
    """Return whether oneDNN is available and multiplies this dtype. PyTorch does not document these
    operators; without them the plain product computes the same results."""
    operators = torch.ops.mkldnn
    is_known = hasattr(operators, "_reorder_linear_weight")
    if not torch._C._has_mkldnn or not is_known or not hasattr(operators, "_linear_pointwise"):
        return False
    if dtype == torch.bfloat16:
        return bool(operators._is_mkldnn_bf16_supported())
    return dtype == torch.float32


def _has_packed_int8() -> bool:
    """Return whether oneDNN is available and the processor has its byte instructions, without which
    oneDNN is slower than `_int_mm`. PyTorch does not document these operators."""
    operators = torch.ops.onednn
    is_known = hasattr(operators, "qlinear_prepack") and hasattr(operators, "qlinear_pointwise")
    if not torch._C._has_mkldnn or not is_known or not hasattr(torch.cpu, "_is_vnni_supported"):
        return False
    return bool(torch.cpu._is_vnni_supported())
