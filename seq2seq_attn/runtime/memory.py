"""Set up the garbage collector, the allocator of glibc and the caches of compiled primitives, and
explain out-of-memory errors."""

import ctypes
import gc
import os
import re
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager

from seq2seq_attn.errors import UserError

# malloc.h of the GNU C library
_M_TRIM_THRESHOLD = -1
_M_MMAP_THRESHOLD = -3
_OLD_MMAP_BYTES = 32 << 20
"""largest mmap threshold that older versions of glibc accept"""
NUM_PRIMITIVES = 128
"""number of compiled primitives, and of their descriptions, that stay in memory"""


def keep_memory_flat() -> None:
    """Make glibc return freed blocks of 8 MiB and more to the system. This setting is for
    translation and has an effect only with glibc.

    By default, glibc raises this threshold up to 32 MB as a program runs. Tensors of many sizes
    then fragment the heap, which grows to several times the memory in use. That is too much for a
    service that runs for hours. A lower threshold costs speed: with 1 MB, a beam search is a third
    slower.
    """
    _set_thresholds(mmap=8 << 20, trim=64 << 20)


def reuse_large_blocks() -> None:
    """Make glibc keep freed blocks of up to 1 GiB for reuse. This setting is for training and has
    an effect only with glibc.

    By default, glibc returns blocks of more than 32 MB to the system, which clears each page when
    the blocks are allocated again. That takes up to a tenth of training time, because every update
    allocates the same large tensors (gradients of embeddings and output layer).
    """
    _set_thresholds(mmap=1 << 30, trim=1 << 30)


def give_back_memory() -> None:
    """Return the free memory of the heap to the system now. The call has an effect only with
    glibc."""
    _call_glibc("malloc_trim", 0)


def _set_thresholds(*, mmap: int, trim: int) -> None:
    # `mallopt` returns 0 if it rejects the value.
    if not _call_glibc("mallopt", _M_MMAP_THRESHOLD, mmap):
        _call_glibc("mallopt", _M_MMAP_THRESHOLD, min(mmap, _OLD_MMAP_BYTES))
    _call_glibc("mallopt", _M_TRIM_THRESHOLD, trim)


def _call_glibc(function: str, *arguments: int) -> int:
    """Call a function of glibc and return its result. Return 0 without glibc."""
    library = ctypes.CDLL(None)
    return getattr(library, function)(*arguments) if hasattr(library, function) else 0


def keep_few_primitives() -> None:
    """Limit oneDNN's cache of compiled primitives, and torch's cache of their descriptions, to
    `NUM_PRIMITIVES`, unless the environment sets the limits. The call must precede the first matrix
    product.

    oneDNN compiles a primitive for every shape, which takes half a MiB and up to two milliseconds.
    Torch describes it in a quarter of a MiB. By default, each cache has 1,024 entries. They stay
    where they were allocated, so the heap around them fragments.
    """
    for name in ("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "LRU_CACHE_CAPACITY"):
        os.environ.setdefault(name, str(NUM_PRIMITIVES))


@contextmanager
def paused_collector() -> Iterator[None]:
    """Pause the garbage collector while modules and models are loaded, and exempt their objects
    from later collections. This is for the command line only, because it exempts all objects of the
    process.

    Loading creates 400,000 objects, of which hardly any are garbage. The collector took 0.4 s of
    CPU time to examine them.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.freeze()
            gc.enable()


def is_memory_error(error: Exception) -> bool:
    """Return whether an error of Python, numpy or torch says that there is not enough memory."""
    kinds = {kind.__name__ for kind in type(error).__mro__}
    if kinds & {"MemoryError", "OutOfMemoryError"}:
        return True
    pattern = "can't allocate memory|CUDA error: out of memory|ALLOC_FAILED"
    return re.search(pattern, str(error)) is not None


@contextmanager
def explain_memory_error(setting: str, advice: str) -> Iterator[None]:
    """Turn an out-of-memory error of torch or Python into a UserError with the message "out of
    memory with <setting>; <advice>"."""
    try:
        yield
    except (MemoryError, RuntimeError) as error:
        if not is_memory_error(error):
            raise
        raise UserError(f"out of memory with {setting}; {advice}") from error


def suggest_smaller_batch(batch_size: int) -> AbstractContextManager[None]:
    """Turn an out-of-memory error into a UserError that advises a smaller `--batch-size`."""
    return explain_memory_error(
        f"--batch-size {batch_size}", f"try --batch-size {max(1, batch_size // 2)}"
    )
