"""Device and precision: choose them, run the forward pass in the precision, and scale the loss for
fp16."""

from contextlib import AbstractContextManager, nullcontext
from typing import Literal

import torch

from seq2seq_attn.errors import UsageError
from seq2seq_attn.runtime.environment import describe_cpu

Precision = Literal["fp32", "bf16", "fp16", "int8"]
"""fp16 is for training only; int8 (quantized weights) is for translation on a CPU only"""
TRANSLATION_PRECISIONS: tuple[Precision, ...] = ("fp32", "bf16", "int8")
DTYPES = {"bf16": torch.bfloat16, "fp16": torch.float16}


def resolve_device(name: str) -> torch.device:
    """Return the device with the name `auto` (a GPU if there is one), `cpu`, `cuda` or `cuda:N`.
    Raises UsageError if the name is unknown or the machine has no such GPU."""
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    kind, _, number = name.partition(":")
    if kind not in ("cpu", "cuda") or (":" in name and (kind == "cpu" or not number.isdecimal())):
        raise UsageError(f"device {name!r}: expected auto, cpu, cuda or cuda:N")
    if kind == "cuda":
        num_gpus = torch.cuda.device_count()
        if int(number or 0) >= num_gpus:
            raise UsageError(
                f"device {name!r}: this machine has {num_gpus} usable CUDA GPUs; use auto or cpu"
            )
    return torch.device(name)


def training_precision(
    name: Literal["auto", "fp32", "bf16", "fp16"], device: torch.device
) -> Precision:
    """Return the precision of training. `auto` is bf16 if the hardware has instructions for it.
    Otherwise it is fp16 on a GPU and fp32 on a CPU.

    A CPU without AMX or AVX512-BF16 emulates bf16, which is slower than fp32.
    """
    if name != "auto":
        return name
    if multiplies_bf16(device):
        return "bf16"
    return "fp16" if device.type == "cuda" else "fp32"


def translation_precision(name: str, device: torch.device) -> Precision:
    """Return the precision of translation. `auto` is fp32. On CPUs with VNNI and without AMX, int8
    translates 1.5 times as fast, but two of eight BLEU scores fell by 0.10 and 0.13
    (docs/speed/search-options.json).

    Raises:
        UsageError: the precision is unknown, or the device does not support it.
    """
    if name == "auto":
        return "fp32"
    if name not in TRANSLATION_PRECISIONS:
        raise UsageError(f"precision {name!r}: expected auto, {', '.join(TRANSLATION_PRECISIONS)}")
    if name == "int8" and device.type != "cpu":
        raise UsageError(f"precision 'int8' on {device}: it is for CPUs; use fp32")
    return name


def multiplies_bf16(device: torch.device) -> bool:
    """Return whether the device has bf16 instructions. Return False for a CPU whose properties are
    unknown. Without these instructions, bf16 is emulated and many times slower than fp32."""
    if device.type == "cuda":
        return bool(torch.cuda.is_bf16_supported(including_emulation=False))
    flags = describe_cpu().get("flags", "").split()
    return "avx512_bf16" in flags or "amx_bf16" in flags


def cpu_slows_mkl() -> bool:
    """Return whether MKL is slow on the CPU: it is an AMD CPU from Zen 5 (family 26) on, without
    AMX. Return False for a CPU whose properties are unknown.

    On Zen 5, float32 products of MKL reach 42 % of the peak, and those of oneDNN 85 to 95 %. On Zen
    4, products of MKL reach 80 to 90 % of the peak, and training is only 1.02 times as fast with
    oneDNN.
    """
    cpu = describe_cpu()
    is_zen_5 = cpu.get("vendor_id") == "AuthenticAMD" and int(cpu.get("cpu family", 0)) >= 26
    return is_zen_5 and "amx_tile" not in cpu.get("flags", "").split()


def autocast(precision: Precision, device: torch.device) -> AbstractContextManager[object]:
    """Return the autocast context of a forward pass. Parameters stay in float32."""
    if precision == "fp32":
        return nullcontext()
    return torch.autocast(device.type, dtype=DTYPES[precision])


def tune_float32(precision: Precision, device: torch.device) -> None:
    """Choose the implementation of float32 products in this process.

    With half precision on a GPU, the remaining float32 products may use TF32 (10-bit mantissa).
    With `fp32`, products keep the full precision of float32. On a CPU on which MKL is slow, oneDNN
    computes the products, and an update of `multi30k` takes 0.62 of the time.

    PyTorch has no setting that selects oneDNN, but uses oneDNN for float32 products whose factors
    may be rounded to bfloat16 (`medium`). oneDNN rounds the factors only on CPUs with AMX. A
    product of factors that bfloat16 cannot represent checks that oneDNN does not round; otherwise
    the setting is undone.
    """
    if device.type == "cuda" and precision != "fp32":
        torch.set_float32_matmul_precision("high")
    if device.type == "cpu" and precision == "fp32" and cpu_slows_mkl():
        torch.set_float32_matmul_precision("medium")
        factor = torch.full((64, 64), 1 + 2**-10)
        if not torch.allclose(factor @ factor, 64 * factor**2, rtol=1e-6):
            torch.set_float32_matmul_precision("highest")


def build_scaler(precision: Precision, device: torch.device) -> torch.amp.GradScaler | None:
    """Return the loss scaler for fp16, in which small gradients would underflow. Return None for
    other precisions."""
    if precision != "fp16":
        return None
    scaler = torch.amp.GradScaler(device.type)
    # The first call of `scale` sets the scale. It is made here, because a rank may have no loss in
    # its first update.
    scaler.scale(torch.zeros((), device=device))
    return scaler
