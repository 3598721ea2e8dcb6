"""Memory that libraries keep for later: less of it for a service, more for a training."""

from __future__ import annotations

import ctypes
import os
import sys
import time

_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3  # malloc.h of the GNU C library
_TRIM_BYTES = 64 << 20
_MMAP_BYTES = 8 << 20
_ANY_BYTES = 1 << 30
TRAINING_PRIMITIVES = 320
"""Batches come in some dozens of lengths, each again after some updates. Of an update's 90 products in half precision
20 are compiled anew with 64 kept, 12 with 256, 4 with 512, when `multi30k` takes a little more than 2 GiB. Those 20
cost 4 to 10 % of the time, more with two threads: compiling is done by one."""
TRANSLATING_PRIMITIVES = 64
"""A service must stay small; its steps multiply by few shapes."""


def keep_memory_flat() -> None:
    """Let large blocks go back to the system when they are freed, in this process, from now on.

    By default the GNU C library raises the size from which blocks do so up to 32 MB as a program runs; tensors of ever
    other sizes then leave a heap full of holes, which grows to several times what is in use. Translating for hours must
    not. With a smaller size than this one, giving back and asking again costs more: at 1 MB a third of a beam's speed.
    Other C libraries are left alone.
    """
    _set_thresholds(mmap=_MMAP_BYTES, trim=_TRIM_BYTES)


def reuse_large_blocks() -> None:
    """Keep large blocks that are freed for the next ones, in this process, from now on.

    By default the GNU C library gives blocks of more than 32 MB back to the system and asks for them again, and the
    system clears each page anew: up to a tenth of the time of a training whose updates make the same large tensors
    (gradients of embeddings and output layer). Other C libraries are left alone.
    """
    _set_thresholds(mmap=_ANY_BYTES, trim=_ANY_BYTES)


def give_back_memory() -> None:
    """Give what is free in the heap back to the system, now. Other C libraries than the GNU one are left alone."""
    _call_gnu_library("malloc_trim", 0)


class RegularGiveBack:
    """`give_back_memory`, called as often as one likes and done once in so many seconds.

    A heap of large blocks that is used for hours gets holes: whatever small thing is kept (compiled products, above
    all) may come to lie behind a large block, which then fits nothing else. What is given back has to be asked for
    and cleared again by the next updates, so it is not done after each.
    """

    def __init__(self, every_s: float = 15.0) -> None:
        self._every_s = every_s
        self._done_at = time.monotonic()

    def __call__(self) -> None:
        """Give back if it is time."""
        if time.monotonic() - self._done_at >= self._every_s:
            give_back_memory()
            self._done_at = time.monotonic()


def _set_thresholds(*, mmap: int, trim: int) -> None:
    _call_gnu_library("mallopt", _M_MMAP_THRESHOLD, mmap)
    _call_gnu_library("mallopt", _M_TRIM_THRESHOLD, trim)


def _call_gnu_library(function: str, *arguments: int) -> None:
    if sys.platform != "linux":
        return
    try:
        getattr(ctypes.CDLL(None), function)(*arguments)
    except (AttributeError, OSError):
        pass  # another C library


def keep_primitives(most: int) -> None:
    """Let oneDNN remember this many compiled matrix products, in this process, unless the environment says how many.

    It compiles one for every shape it meets, half a MiB and up to two milliseconds each, and by default keeps 1,024 of
    them (of the others, half of the memory stays all the same). To be called before the first product. Concerns half
    precision above all: float32 products are MKL's.
    """
    os.environ.setdefault("ONEDNN_PRIMITIVE_CACHE_CAPACITY", str(most))
