"""Ctrl-C, SIGTERM and a hang-up during training: finish the update, save, leave.

The first signal is only noted; the training loop asks `StopRequest.is_set` between updates. After a second one the
process leaves at once; the last saved state stays valid, whatever was going on.

A signal that was ignored when the process started stays ignored. `nohup` ignores SIGHUP so that its command outlives
the terminal, and a shell without job control ignores SIGINT in what it starts with `&` (POSIX, section 2.11), because
Ctrl-C is meant for the command in the foreground and reaches all processes of the terminal.
"""

from __future__ import annotations

import logging
import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType

log = logging.getLogger(__name__)


class StopRequest:
    """Whether a signal, to this process or to another of the training, has asked to stop, and which."""

    def __init__(self) -> None:
        self.signal_number: int | None = None

    @property
    def is_set(self) -> bool:
        """A signal has arrived."""
        return self.signal_number is not None

    def leave(self) -> None:
        """Raise what the signal means to the caller: `KeyboardInterrupt` (exit 130) or `SystemExit` (128 + signal)."""
        if self.signal_number == signal.SIGINT:
            raise KeyboardInterrupt
        if self.signal_number is not None:
            raise SystemExit(128 + self.signal_number)


@contextmanager
def catch_signals() -> Iterator[StopRequest]:
    """Note SIGINT, SIGTERM and SIGHUP instead of dying of them; the former handlers come back at the end.

    Outside the main thread Python allows no handlers: then nothing is caught.
    """
    request = StopRequest()
    seen: list[int] = []
    if threading.current_thread() is not threading.main_thread():
        yield request
        return

    def note(signal_number: int, frame: FrameType | None) -> None:
        request.signal_number = signal_number
        seen.append(signal_number)
        if len(seen) > 1:  # not `is_set`, which another process may have been the cause of
            request.leave()
        # Not through the log: the signal may have come while that was writing, and it cannot be entered twice.
        with suppress(OSError):  # a hang-up has closed the terminal
            os.write(2, f"\n{signal.Signals(signal_number).name}: finishing this update, then saving\n".encode())

    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    former = {number: signal.signal(number, note) for number in numbers if signal.getsignal(number) != signal.SIG_IGN}
    if signal.SIGINT not in former:
        log.info("SIGINT is ignored, as in any background job of a script; to stop: kill -TERM %d", os.getpid())
    try:
        yield request
    finally:
        for number, handler in former.items():
            signal.signal(number, handler)
