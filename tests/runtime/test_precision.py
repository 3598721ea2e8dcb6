from pathlib import Path

import pytest
import torch

from seq2seq_attn.errors import UsageError
from seq2seq_attn.runtime import precision
from seq2seq_attn.runtime.precision import Precision, allow_tf32, build_scaler, cpu_multiplies_bf16, training_precision

CPU = torch.device("cpu")


@pytest.mark.parametrize(
    ("flags", "expected"),
    [("fpu sse avx2 avx512f", False), ("fpu avx512_bf16", True), ("amx_tile amx_bf16", True), ("", False)],
)
def test_auto_on_a_cpu_looks_for_bf16_instructions(tmp_path: Path, flags: str, expected: bool) -> None:
    cpuinfo = tmp_path / "cpuinfo"
    cpuinfo.write_text(f"processor : 0\nflags\t\t: {flags}\nbugs : amx_bf16\n")
    assert cpu_multiplies_bf16(cpuinfo) is expected
    assert not cpu_multiplies_bf16(tmp_path / "nowhere")


@pytest.mark.parametrize("has_bf16", [True, False])
def test_auto_takes_what_is_fast(monkeypatch: pytest.MonkeyPatch, has_bf16: bool) -> None:
    monkeypatch.setattr(precision, "cpu_multiplies_bf16", lambda: has_bf16)
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
    ("name", "device", "expected"), [("bf16", "cuda", "high"), ("fp32", "cuda", "highest"), ("bf16", "cpu", "highest")]
)
def test_tf32_is_for_what_half_precision_leaves_over(name: Precision, device: str, expected: str) -> None:
    try:
        allow_tf32(name, torch.device(device))
        assert torch.get_float32_matmul_precision() == expected
    finally:
        torch.set_float32_matmul_precision("highest")
