"""Tune the garbage collector, glibc's allocator and oneDNN's cache of compiled primitives; explain
a lack of memory."""

import ctypes
import gc
import os
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager

from seq2seq_attn.errors import UserError

# malloc.h of the GNU C library
_M_TRIM_THRESHOLD = -1
_M_MMAP_THRESHOLD = -3
_OLD_MMAP_BYTES = 32 << 20
"""older versions of glibc refuse more"""
TRANSLATING_PRIMITIVES = 64
"""Cache size for translation: its steps multiply few shapes, and a service must stay small."""


def keep_memory_flat() -> None:
    """Return freed blocks of 8 MiB and more to the system, from now on. For translation; glibc
    only.

    By default glibc raises this threshold up to 32 MB as a program runs. Tensors of many sizes then
    fragment the heap, which grows to several times the memory in use, too much for a service that
    runs for hours. A lower threshold costs speed: with 1 MB, a beam search is a third slower.
    """
    _set_thresholds(mmap=8 << 20, trim=64 << 20)


def reuse_large_blocks() -> None:
    """Keep freed blocks of up to 1 GiB for reuse, from now on. For training; glibc only.

    By default glibc returns blocks of more than 32 MB to the system, which clears each page when
    they are allocated again. That takes up to a tenth of training time, because every update
    allocates the same large tensors (gradients of embeddings and output layer).
    """
    _set_thresholds(mmap=1 << 30, trim=1 << 30)


def give_back_memory() -> None:
    """Return the heap's free memory to the system, now. glibc only."""
    _call_glibc("malloc_trim", 0)


def _set_thresholds(*, mmap: int, trim: int) -> None:
    if not _call_glibc("mallopt", _M_MMAP_THRESHOLD, mmap):
        _call_glibc("mallopt", _M_MMAP_THRESHOLD, min(mmap, _OLD_MMAP_BYTES))
    _call_glibc("mallopt", _M_TRIM_THRESHOLD, trim)


def _call_glibc(function: str, *arguments: int) -> int:
    """The result of a function; 0 without glibc."""
    library = ctypes.CDLL(None)
    return getattr(library, function)(*arguments) if hasattr(library, function) else 0


def keep_primitives(most: int) -> None:
    """Set the size of oneDNN's cache of compiled primitives, unless the environment sets it. Call
    it before the first matrix product.

    oneDNN compiles a primitive for every shape: half a MiB and up to two milliseconds each. By
    default it caches 1,024 (and evicting one frees only half of its memory). This matters in half
    precision; MKL does the float32 products.

    Training leaves it at that: an epoch of `multi30k`, whose batches come in a few dozen lengths,
    needs 700. With 512, two of the 90 products per update would be recompiled, with 320 six, and
    the peak of memory would not be lower.
    """
    os.environ.setdefault("ONEDNN_PRIMITIVE_CACHE_CAPACITY", str(most))


@contextmanager
def paused_collector() -> Iterator[None]:
    """Pause the garbage collector while modules and models are loaded, and exempt them from later
    collections. For the command line, because it exempts the whole process's objects.

    Loading makes 400,000 objects, hardly any of them garbage. Looking for it took 0.4 s of CPU
    time.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.freeze()
            gc.enable()


@contextmanager
def explain_memory_error(setting: str, advice: str) -> Iterator[None]:
    """Turn an out-of-memory error of torch or Python into a UserError: "out of memory with
    <setting>; <advice>"."""
    try:
        yield
    except (MemoryError, RuntimeError) as error:
        import torch

        is_known_type = isinstance(error, MemoryError | torch.OutOfMemoryError)
        if not is_known_type and "can't allocate memory" not in str(error):
            raise
        raise UserError(f"out of memory with {setting}; {advice}") from error


def suggest_smaller_batch(batch_size: int) -> AbstractContextManager[None]:
    """Turn an out-of-memory error into one that names the option to lower."""
    return explain_memory_error(
        f"--batch-size {batch_size}", f"try --batch-size {max(1, batch_size // 2)}"
    )
