"""The C library's allocator, told to give memory back."""

from __future__ import annotations

import ctypes
import sys

_M_MMAP_THRESHOLD = -3  # malloc.h of the GNU C library
_THRESHOLD_BYTES = 1 << 20


def keep_memory_flat() -> None:
    """Let large blocks go back to the system when they are freed, in this process, from now on.

    By default the GNU C library raises the size from which blocks do so up to 32 MB as a program runs; tensors of ever
    other sizes then leave a heap full of holes, which grows to several times what is in use. Translating for hours must
    not: on 2,000 odd lines this took a third of the memory, and a tenth more time. Other C libraries are left alone.
    """
    if sys.platform != "linux":
        return
    try:
        ctypes.CDLL(None).mallopt(_M_MMAP_THRESHOLD, _THRESHOLD_BYTES)
    except (AttributeError, OSError):
        pass  # not the GNU C library
