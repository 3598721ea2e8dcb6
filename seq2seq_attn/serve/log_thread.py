"""Write the log in a thread, so that the server does not wait while a line is written."""

import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager
from logging.handlers import QueueHandler, QueueListener
from queue import Queue

LINE_FORMAT = "%(asctime)s %(message)s"
_MAX_LINES = 1_000
"""maximum number of lines that wait to be written; further lines are dropped"""
_END_TIMEOUT_S = 1.0
"""maximum number of seconds to write the last lines when the server ends"""


class _DroppingHandler(QueueHandler):
    """Puts lines into a queue, and drops lines while the queue is full."""

    def handleError(self, record: logging.LogRecord) -> None:
        """Drop the line."""


@contextmanager
def logging_in_background() -> Iterator[None]:
    """Inside the block, let a thread write the log of the package, each line with the time."""
    package = logging.getLogger("seq2seq_attn")
    former = package.handlers
    lines: Queue[logging.LogRecord] = Queue(_MAX_LINES)
    handler = _DroppingHandler(lines)
    handler.setFormatter(logging.Formatter(LINE_FORMAT))
    QueueListener(lines, *former).start()  # its thread ends with the process
    package.handlers = [handler]
    try:
        yield
    finally:
        package.handlers = former
        stop_at = time.monotonic() + _END_TIMEOUT_S
        while lines.unfinished_tasks and time.monotonic() < stop_at:
            time.sleep(0.01)
