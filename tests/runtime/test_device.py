from pathlib import Path

import pytest
import torch

from seq2seq_attn.errors import UsageError
from seq2seq_attn.runtime import device as runtime_device
from seq2seq_attn.runtime.device import (
    Precision,
    build_scaler,
    cpu_multiplies_bf16,
    cpu_slows_mkl,
    training_precision,
    tune_float32,
)

CPU = torch.device("cpu")


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        ("fpu sse avx2 avx512f", False),
        ("fpu avx512_bf16", True),
        ("amx_tile amx_bf16", True),
        ("", False),
    ],
)
def test_auto_on_a_cpu_looks_for_bf16_instructions(
    tmp_path: Path, flags: str, expected: bool
) -> None:
    cpuinfo = tmp_path / "cpuinfo"
    cpuinfo.write_text(f"processor : 0\nflags\t\t: {flags}\nbugs : amx_bf16\n")
    assert cpu_multiplies_bf16(cpuinfo) is expected
    assert not cpu_multiplies_bf16(tmp_path / "nowhere")


@pytest.mark.parametrize("has_bf16", [True, False])
def test_auto_takes_what_is_fast(monkeypatch: pytest.MonkeyPatch, has_bf16: bool) -> None:
    monkeypatch.setattr(runtime_device, "cpu_multiplies_bf16", lambda: has_bf16)
    assert training_precision("auto", CPU) == ("bf16" if has_bf16 else "fp32")
    assert training_precision("fp16", CPU) == "fp16"


def test_an_unknown_precision_is_refused() -> None:
    with pytest.raises(UsageError, match="precision 'int8'"):
        training_precision("int8", CPU)


def test_only_fp16_scales() -> None:
    assert build_scaler("fp32", CPU) is None
    assert build_scaler("bf16", CPU) is None
    assert build_scaler("fp16", CPU) is not None


@pytest.mark.parametrize(
    ("name", "device", "expected"),
    [("bf16", "cuda", "high"), ("fp32", "cuda", "highest"), ("bf16", "cpu", "highest")],
)
def test_tf32_is_for_what_half_precision_leaves_over(
    name: Precision, device: str, expected: str
) -> None:
    try:
        tune_float32(name, torch.device(device))
        assert torch.get_float32_matmul_precision() == expected
    finally:
        torch.set_float32_matmul_precision("highest")


@pytest.mark.parametrize(
    ("vendor", "family", "flags", "expected"),
    [
        ("AuthenticAMD", 26, "fpu avx512_bf16", True),
        ("AuthenticAMD", 25, "fpu avx512_bf16", False),
        ("AuthenticAMD", 27, "fpu amx_tile", False),
        ("GenuineIntel", 26, "fpu avx512f", False),
    ],
)
def test_mkl_is_slow_on_processors_of_amd(
    tmp_path: Path, vendor: str, family: int, flags: str, expected: bool
) -> None:
    cpuinfo = tmp_path / "cpuinfo"
    cpuinfo.write_text(
        f"vendor_id : {vendor}\ncpu family : {family}\nflags : {flags}\n\nvendor_id : other\n"
    )
    assert cpu_slows_mkl(cpuinfo) is expected
    assert not cpu_slows_mkl(tmp_path / "nowhere")


@pytest.mark.parametrize(("name", "slow"), [("fp32", True), ("fp32", False), ("bf16", True)])
def test_products_of_onednn_are_exact_float32(
    monkeypatch: pytest.MonkeyPatch, name: Precision, slow: bool
) -> None:
    monkeypatch.setattr(runtime_device, "cpu_slows_mkl", lambda: slow)
    left, right = torch.randn(96, 80), torch.randn(80, 112)
    try:
        tune_float32(name, CPU)
        # a CPU with AMX rounds the factors, which the function notices
        is_plain = (
            name == "bf16"
            or not slow
            or "amx_tile" in Path("/proc/cpuinfo").read_text(encoding="utf-8")
        )
        assert torch.get_float32_matmul_precision() == ("highest" if is_plain else "medium")
        torch.testing.assert_close(
            (left @ right).double(), left.double() @ right.double(), rtol=1e-5, atol=1e-5
        )
    finally:
        torch.set_float32_matmul_precision("highest")
