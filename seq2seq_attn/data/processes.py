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
"""Number of submitted items per process: the process works on the first while the second waits."""


def map_in_order(
    function: Callable[[ItemT], ResultT], items: Iterable[ItemT], *, num_processes: int
) -> Generator[tuple[ItemT, ResultT], None, None]:
    """Yield each item with the result of `function(item)`, in order. Few items are read ahead, so
    memory does not grow with the number of items.

    Args:
        function: the function to call. It is pickled for each item if there are several processes.
            An exception in a worker process is raised here.
        items: the arguments, which are pickled if there are several processes.
        num_processes: the number of worker processes; 1 calls the function in this process.

    Raises:
        UserError: a worker process died.
    """
    if num_processes == 1:
        yield from ((item, function(item)) for item in items)
        return
    # "spawn" is used because a fork would copy the memory of this process, and the locks that its
    # threads hold.
    context = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(num_processes, mp_context=context, initializer=follow_parent)
    try:
        pending = deque[tuple[ItemT, Future[ResultT]]]()
        for item in items:
            pending.append((item, pool.submit(_work, function, item)))
            if len(pending) > _AHEAD * num_processes:
                item, future = pending.popleft()
                yield item, future.result()
        for item, future in pending:
            yield item, future.result()
    except BrokenProcessPool:
        raise UserError(
            f"one of {num_processes} worker processes died: out of memory, or a script without "
            '`if __name__ == "__main__":`; data.num_processes=1 needs no worker processes'
        ) from None
    finally:
        pool.shutdown(cancel_futures=True)


def follow_parent() -> None:
    """Set up a worker process: it ignores Ctrl-C, and it exits when its parent dies. Ctrl-C reaches
    every process of the terminal, so the parent handles it for all workers."""
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
    """Call the function in a worker process."""
    result = function(item)
    if not gc.get_freeze_count():
        # Tokenizers and the like were loaded by the first call and stay in memory, so the garbage
        # collector need not traverse them.
        gc.freeze()
    return result
