"""What the memory switches set, and leave alone."""

import os
import subprocess
import sys

import pytest

from seq2seq_attn.allocator import keep_few_primitives

CAPACITY = "ONEDNN_PRIMITIVE_CACHE_CAPACITY"


def test_the_cache_is_limited_unless_the_user_says_how(monkeypatch):
    monkeypatch.delenv(CAPACITY, raising=False)
    keep_few_primitives()
    assert 0 < int(os.environ[CAPACITY]) < 1024
    monkeypatch.setenv(CAPACITY, "7")
    keep_few_primitives()
    assert os.environ[CAPACITY] == "7"


FREED = """
import sys
from seq2seq_attn.allocator import keep_memory_flat

def resident_mib():
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) / 1024 for line in file if line.startswith("VmRSS"))

if "flat" in sys.argv:
    keep_memory_flat()
large = bytearray(30 << 20)
del large  # from here on, by default, blocks of up to this size lie in the heap
blocks, pins = [], []
for _ in range(16):
    blocks.append(bytearray(12 << 20))
    pins.append(bytearray(1 << 16))  # keeps the heap from shrinking below it
full = resident_mib()
blocks.clear()
print(full - resident_mib())
"""


@pytest.mark.skipif(sys.platform != "linux", reason="mallopt is the GNU C library's")
@pytest.mark.parametrize(("argument", "goes_back"), [("flat", True), ("default", False)])
def test_large_blocks_go_back_to_the_system(argument, goes_back):
    done = subprocess.run([sys.executable, "-c", FREED, argument], capture_output=True, text=True, check=True)
    assert (float(done.stdout) > 150) == goes_back
