"""Memory that libraries keep for later: less of it for a service, more for a training."""

from __future__ import annotations

import ctypes
import os
import sys

_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3  # malloc.h of the GNU C library
_TRIM_BYTES = 64 << 20
_MMAP_BYTES = 8 << 20
_ANY_BYTES = 1 << 30


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


def _set_thresholds(*, mmap: int, trim: int) -> None:
    if sys.platform != "linux":
        return
    try:
        library = ctypes.CDLL(None)
        library.mallopt(_M_MMAP_THRESHOLD, mmap)
        library.mallopt(_M_TRIM_THRESHOLD, trim)
    except (AttributeError, OSError):
        pass  # not the GNU C library


def keep_few_primitives() -> None:
    """Let oneDNN remember fewer compiled matrix products, in this process, unless the environment says how many.

    It compiles one for every shape it meets, and by default keeps 1,024 of them. In training, batches have ever other
    numbers of rows: after some hundred updates that is several hundred MB of code that is hardly run again. To be
    called before the first product; compiling again costs 1 to 2 % of the time.
    """
    os.environ.setdefault("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "64")
