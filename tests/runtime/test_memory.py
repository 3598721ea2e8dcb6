"""Effects of the memory switches."""

import gc
import os
import subprocess
import sys

import pytest
import torch

from seq2seq_attn.config import load_config
from seq2seq_attn.errors import UsageError, UserError
from seq2seq_attn.runtime.memory import explain_memory_error, keep_few_primitives, paused_collector
from seq2seq_attn.train.loop import train

CAPACITY = "ONEDNN_PRIMITIVE_CACHE_CAPACITY"
CAPACITIES = [CAPACITY, "LRU_CACHE_CAPACITY"]


@pytest.mark.parametrize("capacity", CAPACITIES)
def test_the_caches_are_limited_unless_the_user_says_how(monkeypatch, capacity):
    for name in CAPACITIES:
        monkeypatch.setenv(name, "")  # is restored after the test
        monkeypatch.delenv(name)
    keep_few_primitives()
    assert os.environ[capacity] == "128"
    monkeypatch.setenv(capacity, "7")
    keep_few_primitives()
    assert os.environ[capacity] == "7"


RESIDENT = """
import sys

def resident_mib():
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) / 1024 for line in file if line.startswith("VmRSS"))
"""
MULTIPLIED = (
    RESIDENT
    + """
import torch
from seq2seq_attn.runtime.memory import keep_few_primitives

if sys.argv[1] == "limited":
    keep_few_primitives()
weight = torch.randn(256, 256, dtype=torch.bfloat16)
weight @ weight
before = resident_mib()
for rows in range(500):
    torch.randn(100 + rows, 256, dtype=torch.bfloat16) @ weight
print(resident_mib() - before)
"""
)


@pytest.mark.skipif(
    sys.platform != "linux" or not torch.ops.mkldnn._is_mkldnn_bf16_supported(),
    reason="oneDNN multiplies bfloat16 where the processor does",
)
def test_matrix_products_of_many_shapes_need_little_memory():
    grown = {}
    environment = {name: value for name, value in os.environ.items() if name not in CAPACITIES}
    for argument in ("limited", "default"):
        done = subprocess.run(
            [sys.executable, "-c", MULTIPLIED, argument],
            capture_output=True,
            text=True,
            check=True,
            env=environment,
        )
        grown[argument] = float(done.stdout)
    assert grown["limited"] < 0.5 * grown["default"]


def test_training_limits_the_caches(monkeypatch, tmp_path):
    for name in CAPACITIES:
        monkeypatch.setenv(name, "")
        monkeypatch.delenv(name)
    (tmp_path / "config.yaml").touch()
    with pytest.raises(UsageError):
        train(load_config(["quickstart"]), run_dir=tmp_path)
    assert [int(os.environ[name]) < 1024 for name in CAPACITIES] == [True, True]


def test_the_collector_is_paused_and_then_spares_what_was_loaded():
    with paused_collector():
        loaded = [[]]
        with paused_collector():
            pass
        assert not gc.isenabled()
        assert not gc.get_freeze_count()
    assert gc.isenabled()
    assert not any(each is loaded for each in gc.get_objects())  # it no longer looks at them


FREED = (
    RESIDENT
    + """
from seq2seq_attn.runtime.memory import give_back_memory, keep_memory_flat, reuse_large_blocks

if "flat" in sys.argv[1]:
    keep_memory_flat()
if "reuse" in sys.argv[1]:
    reuse_large_blocks()
large = bytearray(30 << 20)
del large  # from here on, by default, blocks of up to this size lie in the heap
blocks, pins = [], []
for _ in range(16):
    blocks.append(bytearray(12 << 20))
    pins.append(bytearray(1 << 16))  # keeps the heap from shrinking below it
full = resident_mib()
blocks.clear()
if "give_back" in sys.argv[1]:
    give_back_memory()
print(full - resident_mib())
"""
)


@pytest.mark.skipif(sys.platform != "linux", reason="mallopt is the GNU C library's")
@pytest.mark.parametrize(
    ("argument", "goes_back"),
    [("flat", True), ("default", False), ("reuse", False), ("reuse give_back", True)],
)
def test_large_blocks_go_back_to_the_system_or_stay(argument, goes_back):
    done = subprocess.run(
        [sys.executable, "-c", FREED, argument], capture_output=True, text=True, check=True
    )
    assert (float(done.stdout) > 150) == goes_back


@pytest.mark.parametrize(
    "error",
    [
        MemoryError(),
        torch.OutOfMemoryError("CUDA out of memory"),
        RuntimeError("x: can't allocate memory: y"),
        RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`"),
    ],
)
def test_out_of_memory_names_what_to_lower(error):
    with pytest.raises(UserError, match=r"^out of memory with size=64; try size=32$"):
        with explain_memory_error("size=64", "try size=32"):
            raise error
    with (
        pytest.raises(RuntimeError, match="shapes"),
        explain_memory_error("size=64", "try size=32"),
    ):
        raise RuntimeError("shapes do not fit")
