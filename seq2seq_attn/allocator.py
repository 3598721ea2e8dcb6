"""Memory that libraries keep for later, told to be less of it."""

from __future__ import annotations

import ctypes
import os
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


def keep_few_primitives() -> None:
    """Let oneDNN remember fewer compiled matrix products, in this process, unless the environment says how many.

    It compiles one for every shape it meets, and by default keeps 1,024 of them. In training, batches have ever other
    numbers of rows: after some hundred updates that is several hundred MB of code that is hardly run again. To be
    called before the first product; compiling again costs 1 to 2 % of the time.
    """
    os.environ.setdefault("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "64")
