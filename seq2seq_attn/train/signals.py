"""Handle Ctrl-C, SIGTERM and SIGHUP during training: finish the update, save, exit.

The first signal is only recorded; the training loop checks `StopRequest.is_set` between updates. At the second signal
the process exits at once. The last saved state stays valid in any case.

A signal that was ignored when the process started stays ignored. `nohup` ignores SIGHUP so that its command outlives
the terminal, and a shell without job control ignores SIGINT for commands started with `&` (POSIX, section 2.11),
because Ctrl-C is meant for the foreground command but reaches all processes of the terminal.
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
    """Whether a signal to this process or to another rank has asked training to stop, and which signal."""

    def __init__(self) -> None:
        self.signal_number: int | None = None

    @property
    def is_set(self) -> bool:
        """Whether a signal has arrived."""
        return self.signal_number is not None

    def leave(self) -> None:
        """Raise `KeyboardInterrupt` (exit 130) or `SystemExit` (128 + signal)."""
        if self.signal_number == signal.SIGINT:
            raise KeyboardInterrupt
        if self.signal_number is not None:
            raise SystemExit(128 + self.signal_number)


@contextmanager
def catch_signals() -> Iterator[StopRequest]:
    """Record SIGINT, SIGTERM and SIGHUP inside the block; restore the former handlers at its end.

    Python allows handlers in the main thread only; in other threads nothing is caught.
    """
    request = StopRequest()
    seen: list[int] = []
    if threading.current_thread() is not threading.main_thread():
        yield request
        return

    def note(signal_number: int, frame: FrameType | None) -> None:
        request.signal_number = signal_number
        seen.append(signal_number)
        if len(seen) > 1:  # not `is_set`, which another rank may have caused
            request.leave()
        # not through the log, which is not reentrant: the signal may have interrupted it
        with suppress(OSError):  # a hang-up has closed the terminal
            os.write(2, f"\n{signal.Signals(signal_number).name}: finishing this update, then saving\n".encode())

    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    former = {number: signal.signal(number, note) for number in numbers if signal.getsignal(number) != signal.SIG_IGN}
    if signal.SIGINT not in former:
        log.info("SIGINT is ignored, as in every background job of a script; to stop, run: kill -TERM %d", os.getpid())
    try:
        yield request
    finally:
        for number, handler in former.items():
            signal.signal(number, handler)
