"""Precisions and scalers, and how float32 products are made on a processor."""

from pathlib import Path

import pytest
import torch

from seq2seq_attn.runtime import device as runtime_device
from seq2seq_attn.runtime import environment
from seq2seq_attn.runtime.device import (
    build_scaler,
    cpu_slows_mkl,
    multiplies_bf16,
    training_precision,
    tune_float32,
)

CPU = torch.device("cpu")


@pytest.fixture
def set_cpu(tmp_path, monkeypatch):
    """Replace what Linux says of the CPU."""

    def write(text):
        path = tmp_path / "cpuinfo"
        path.write_text(text)
        monkeypatch.setattr(environment, "_CPUINFO", path)
        environment.describe_cpu.cache_clear()

    yield write
    environment.describe_cpu.cache_clear()


@pytest.fixture
def restored_float32():
    yield
    torch.set_float32_matmul_precision("highest")


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        ("fpu sse avx2 avx512f", False),
        ("fpu avx512_bf16", True),
        ("amx_tile amx_bf16", True),
    ],
)
def test_a_cpu_multiplies_bf16_if_it_has_the_instructions(set_cpu, flags, expected):
    set_cpu(f"processor : 0\nflags\t\t: {flags}\nbugs : amx_bf16\n")
    assert multiplies_bf16(CPU) is expected


@pytest.mark.parametrize("has_bf16", [True, False])
def test_auto_is_bf16_where_it_is_fast(monkeypatch, has_bf16):
    monkeypatch.setattr(runtime_device, "multiplies_bf16", lambda device: has_bf16)
    assert training_precision("auto", CPU) == ("bf16" if has_bf16 else "fp32")
    assert training_precision("fp16", CPU) == "fp16"


def test_only_fp16_scales():
    assert build_scaler("fp32", CPU) is None
    assert build_scaler("bf16", CPU) is None
    assert build_scaler("fp16", CPU) is not None


@pytest.mark.usefixtures("restored_float32")
@pytest.mark.parametrize(
    ("name", "device", "expected"),
    [("bf16", "cuda", "high"), ("fp32", "cuda", "highest"), ("bf16", "cpu", "highest")],
)
def test_tf32_is_for_what_half_precision_leaves_over(name, device, expected):
    tune_float32(name, torch.device(device))
    assert torch.get_float32_matmul_precision() == expected


@pytest.mark.parametrize(
    ("vendor", "family", "flags", "expected"),
    [
        ("AuthenticAMD", 26, "fpu avx512_bf16", True),
        ("AuthenticAMD", 25, "fpu avx512_bf16", False),
        ("GenuineIntel", 26, "fpu avx512f", False),
    ],
)
def test_mkl_is_slow_on_processors_of_amd(set_cpu, vendor, family, flags, expected):
    set_cpu(f"vendor_id : {vendor}\ncpu family : {family}\nflags : {flags}\n\nvendor_id : other\n")
    assert cpu_slows_mkl() is expected


def test_an_unknown_cpu_is_neither(monkeypatch, tmp_path):
    monkeypatch.setattr(runtime_device, "describe_cpu", environment.describe_cpu.__wrapped__)
    monkeypatch.setattr(environment, "_CPUINFO", tmp_path / "nowhere")
    assert not multiplies_bf16(CPU)
    assert not cpu_slows_mkl()


@pytest.mark.usefixtures("restored_float32")
@pytest.mark.parametrize(("name", "slow"), [("fp32", True), ("fp32", False), ("bf16", True)])
def test_products_of_onednn_are_exact_float32(monkeypatch, name, slow):
    monkeypatch.setattr(runtime_device, "cpu_slows_mkl", lambda: slow)
    tune_float32(name, CPU)
    # A CPU with AMX rounds the factors, which the function notices.
    has_amx = "amx_tile" in Path("/proc/cpuinfo").read_text("utf-8")
    uses_onednn = name == "fp32" and slow and not has_amx
    assert torch.get_float32_matmul_precision() == ("medium" if uses_onednn else "highest")
    left = torch.randn(96, 80)
    right = torch.randn(80, 112)
    expected = left.double() @ right.double()
    torch.testing.assert_close((left @ right).double(), expected, rtol=1e-5, atol=1e-5)
