"""Map a function over many items in several processes, and yield the results in order."""

import gc
import multiprocessing
import os
import signal
import threading
from collections import deque
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing.connection import wait
from typing import TypeVar

from seq2seq_attn.errors import UserError

ItemT = TypeVar("ItemT")
ResultT = TypeVar("ResultT")

_AHEAD = 2
"""Number of items per process that are submitted in addition to the item whose result is awaited: a
process works on an item while its next item waits."""


def map_in_order(
    function: Callable[[ItemT], ResultT], items: Iterable[ItemT], *, num_processes: int
) -> Generator[tuple[ItemT, ResultT], None, None]:
    """Yield each item with the result of `function(item)`, in the order of the items. Few items are
    read ahead, so memory does not grow with the number of items.

    Args:
        function: the function to call. It is pickled for each item if there are several processes.
            An exception in a worker process is raised here.
        items: the arguments, which are pickled if there are several processes.
        num_processes: the number of worker processes; 1 calls the function in this process.

    Raises:
        UserError: a worker process died.
    """
    if num_processes == 1:
        for item in items:
            yield item, function(item)
        return
    # "spawn" is used because a fork would copy the memory of this process, and the locks that the
    # threads of this process hold.
    context = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(num_processes, mp_context=context, initializer=follow_parent)
    try:
        pending = deque[tuple[ItemT, Future[ResultT]]]()
        for item in items:
            pending.append((item, pool.submit(_work, function, item)))
            if len(pending) > _AHEAD * num_processes:
                oldest, future = pending.popleft()
                yield oldest, future.result()
        for oldest, future in pending:
            yield oldest, future.result()
    except BrokenProcessPool:
        raise UserError(
            f"one of {num_processes} worker processes died: out of memory, or a script without "
            '`if __name__ == "__main__":`; data.num_processes=1 needs no worker processes'
        ) from None
    finally:
        pool.shutdown(cancel_futures=True)


def follow_parent() -> None:
    """Set up a worker process, so that it ignores Ctrl-C and exits when its parent dies. Ctrl-C
    reaches every process of the terminal, and the parent ends its workers."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    """Exit when the parent dies. Otherwise a worker would wait forever after the parent is
    killed."""
    parent = multiprocessing.parent_process()
    assert parent is not None
    wait([parent.sentinel])
    os._exit(1)


def _work(function: Callable[[ItemT], ResultT], item: ItemT) -> ResultT:
    """Return `function(item)` in a worker process. After the first call, exempt all objects in
    memory from garbage collection: they stay until the process ends, as loaded tokenizers do."""
    result = function(item)
    is_first_call = gc.get_freeze_count() == 0
    if is_first_call:
        gc.freeze()
    return result
