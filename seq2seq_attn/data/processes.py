"""Map a function over many items in several processes, with results in order."""

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
"""Items per process in flight: one at work, one waiting."""


def map_in_order(
    function: Callable[[ItemT], ResultT], items: Iterable[ItemT], *, num_processes: int
) -> Generator[tuple[ItemT, ResultT], None, None]:
    """Each item with `function(item)`, in order. Few items are read ahead, so memory does not grow
    with their number.

    Args:
        function: pickled for each item if there are several processes; an exception it raises is
            raised here.
        items: pickled too.
        num_processes: 1 runs in this process.

    Raises:
        UserError: a process died.
    """
    if num_processes == 1:
        yield from ((item, function(item)) for item in items)
        return
    # "spawn": a fork would copy this process's memory, and locks that its threads hold
    context = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(num_processes, mp_context=context, initializer=follow_parent)
    try:
        pending: deque[tuple[ItemT, Future[ResultT]]] = deque()
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
    """Begin a worker process: Ctrl-C, which reaches every process of the terminal, is left to its
    parent."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    """Exit when the parent dies: if it is killed, its workers would wait forever."""
    parent = multiprocessing.parent_process()
    assert parent is not None
    wait([parent.sentinel])
    os._exit(1)


def _work(function: Callable[[ItemT], ResultT], item: ItemT) -> ResultT:
    result = function(item)
    if not gc.get_freeze_count():
        gc.freeze()  # what the function loaded stays, so the collector need not traverse it
    return result
