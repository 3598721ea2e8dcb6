"""Precision: resolve `auto` for training and translation, autocast the forward pass, scale the loss for fp16."""

from contextlib import AbstractContextManager, nullcontext
from functools import cache
from pathlib import Path
from typing import Literal

import torch

from seq2seq_attn.errors import UsageError

Precision = Literal["fp32", "bf16", "fp16", "int8"]
"""fp16 is for training; int8 (quantized weights) is for translation on a CPU"""
TRAINING_PRECISIONS: tuple[Precision, ...] = ("fp32", "bf16", "fp16")
TRANSLATION_PRECISIONS: tuple[Precision, ...] = ("fp32", "bf16", "int8")
DTYPES = {"bf16": torch.bfloat16, "fp16": torch.float16}


def training_precision(name: str, device: torch.device) -> Precision:
    """The precision of training. `auto` is bf16 where the hardware has instructions for it, else fp16 on a GPU and fp32
    on a CPU.

    A CPU without AMX or AVX512-BF16 emulates bf16 and is slower with it than with fp32.

    Raises:
        UsageError: the precision is unknown.
    """
    if name in TRAINING_PRECISIONS:
        return name
    if name != "auto":
        raise UsageError(f"precision {name!r}: expected auto, {', '.join(TRAINING_PRECISIONS)}")
    if multiplies_bf16(device):
        return "bf16"
    return "fp16" if device.type == "cuda" else "fp32"


def translation_precision(name: str, device: torch.device) -> Precision:
    """The precision of translation. `auto` is fp32. Raises UsageError: the precision is unknown, or the device does not
    support it."""
    if name == "auto":
        return "fp32"
    if name not in TRANSLATION_PRECISIONS:
        raise UsageError(f"precision {name!r}: expected auto, {', '.join(TRANSLATION_PRECISIONS)}")
    if name == "int8" and device.type != "cpu":
        raise UsageError(f"precision 'int8' on {device}: it is for CPUs; use bf16")
    return name


def multiplies_bf16(device: torch.device) -> bool:
    """Whether the device has bf16 instructions. Without them bf16 is emulated, many times slower than fp32."""
    if device.type == "cuda":
        return bool(torch.cuda.is_bf16_supported(including_emulation=False))
    return cpu_multiplies_bf16()


@cache
def cpu_multiplies_bf16(cpuinfo: Path = Path("/proc/cpuinfo")) -> bool:
    """Whether the CPU has bf16 instructions; False if /proc/cpuinfo cannot be read."""
    try:
        lines = cpuinfo.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return False
    flags = next((line.split() for line in lines if line.startswith("flags")), [])
    return "avx512_bf16" in flags or "amx_bf16" in flags


def autocast(precision: Precision, device: torch.device) -> AbstractContextManager[object]:
    """The autocast context of a forward pass. Parameters stay float32."""
    if precision == "fp32":
        return nullcontext()
    return torch.autocast(device.type, dtype=DTYPES[precision])


def allow_tf32(precision: Precision, device: torch.device) -> None:
    """With half precision on a GPU, let the remaining float32 products use TF32 (10-bit mantissa), in this process.
    With `fp32`, products stay in full float32."""
    if device.type == "cuda" and precision != "fp32":
        torch.set_float32_matmul_precision("high")


def build_scaler(precision: Precision, device: torch.device) -> torch.amp.GradScaler | None:
    """The loss scaler for fp16, where small gradients would underflow; None for other precisions."""
    if precision != "fp16":
        return None
    scaler = torch.amp.GradScaler(device.type)
    scaler.scale(torch.zeros((), device=device))  # set its scale now: a rank may have no loss in its first update
    return scaler
