"""Precision of the arithmetic: what `auto` means in training and in translation, autocast, fp16's scaler."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Literal

import torch

from seq2seq_attn.errors import UsageError

Precision = Literal["fp32", "bf16", "fp16", "int8"]
"""fp16 is for training; int8, weights rounded to whole numbers of 8 bits, for translation on a CPU"""
TRAINING_PRECISIONS: tuple[Precision, ...] = ("fp32", "bf16", "fp16")
TRANSLATION_PRECISIONS: tuple[Precision, ...] = ("fp32", "bf16", "int8")
DTYPES = {"bf16": torch.bfloat16, "fp16": torch.float16}


def training_precision(name: str, device: torch.device) -> Precision:
    """The precision of training. `auto` is bf16 where the hardware multiplies it fast, else fp16 on a GPU and fp32 on a
    CPU.

    A CPU without AMX or AVX512-BF16 emulates bf16 and is slower with it than with fp32.
    """
    if name in TRAINING_PRECISIONS:
        return name
    if multiplies_bf16(device):
        return "bf16"
    return "fp16" if device.type == "cuda" else "fp32"


def translation_precision(name: str, device: torch.device) -> Precision:
    """The precision of translation. `auto` is fp32.

    Raises:
        UsageError: no such precision, or one that the device does not support.
    """
    if name == "auto":
        return "fp32"
    if name not in TRANSLATION_PRECISIONS:
        raise UsageError(f"precision {name!r}: expected auto, {', '.join(TRANSLATION_PRECISIONS)}")
    if name == "int8" and device.type != "cpu":
        raise UsageError(f"precision 'int8' on {device}: it is for CPUs; use bf16")
    return name


def multiplies_bf16(device: torch.device) -> bool:
    """Whether the device has bf16 instructions; without them bf16 is emulated, many times slower than fp32."""
    if device.type == "cuda":
        return bool(torch.cuda.is_bf16_supported(including_emulation=False))
    return cpu_multiplies_bf16()


def cpu_multiplies_bf16(cpuinfo: Path = Path("/proc/cpuinfo")) -> bool:
    """Whether the CPU has bf16 instructions (False where the system does not say)."""
    try:
        text = cpuinfo.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return False
    flags = next((line for line in text.splitlines() if line.startswith("flags")), "").split()
    return "avx512_bf16" in flags or "amx_bf16" in flags


def autocast(precision: Precision, device: torch.device) -> AbstractContextManager[object]:
    """The context of a forward pass; parameters stay float32."""
    if precision == "fp32":
        return nullcontext()
    return torch.autocast(device.type, dtype=DTYPES[precision])


def allow_tf32(precision: Precision, device: torch.device) -> None:
    """Beside half precision, let a GPU round the inputs of what is left of float32 products to TF32 (10 bits of
    mantissa), in this process. `fp32` stays what it says."""
    if device.type == "cuda" and precision != "fp32":
        torch.set_float32_matmul_precision("high")


def build_scaler(precision: Precision, device: torch.device) -> torch.amp.GradScaler | None:
    """The loss scaler that fp16 needs (its small gradients would become 0); None for the others."""
    if precision != "fp16":
        return None
    scaler = torch.amp.GradScaler(device.type)
    scaler.scale(torch.zeros((), device=device))  # makes its scale now: a rank may have no loss in its first update
    return scaler
