"""The log of the server waits for no reader."""

import logging
import threading

from seq2seq_attn.serve import log_thread

PACKAGE = logging.getLogger("seq2seq_attn")


class Blocked(logging.Handler):
    """A log whose reader has stopped."""

    def __init__(self):
        super().__init__()
        self.is_read = threading.Event()
        self.lines = []

    def emit(self, record):
        self.is_read.wait()
        self.lines.append(record.getMessage())


def test_a_log_that_nobody_reads_blocks_nothing(monkeypatch):
    monkeypatch.setattr(log_thread, "_END_TIMEOUT_S", 0.1)
    blocked = Blocked()
    monkeypatch.setattr(PACKAGE, "handlers", [blocked])
    with log_thread.logging_in_background():
        for number in range(2_000):  # more than wait
            PACKAGE.warning("line %d", number)
    assert PACKAGE.handlers == [blocked]
    blocked.is_read.set()


def test_lines_have_the_time(monkeypatch):
    handler = Blocked()
    handler.is_read.set()
    monkeypatch.setattr(PACKAGE, "handlers", [handler])
    with log_thread.logging_in_background():
        PACKAGE.warning("%d lines", 3)
    [line] = handler.lines
    assert line.endswith("3 lines")
    assert line[:2] == "20"
