"""Handle signals that ask a process to end: Ctrl-C (SIGINT), SIGTERM and SIGHUP.

A signal that was ignored when the process started stays ignored, for two reasons. `nohup` ignores
SIGHUP so that its command outlives the terminal. A shell without job control ignores SIGINT for
commands started with `&` (POSIX, section 2.11), because Ctrl-C is meant for the foreground command
but reaches all processes of the terminal.
"""

import logging
import os
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from types import FrameType

log = logging.getLogger(__name__)


@contextmanager
def handle_signals(
    numbers: Sequence[signal.Signals], handler: Callable[[int, FrameType | None], object]
) -> Iterator[None]:
    """Call `handler` when one of these signals arrives inside the block, unless the signal is
    ignored. Afterwards, restore the former handlers. Python allows signal handlers only in the main
    thread; in other threads, this function has no effect."""
    former = {}
    if threading.current_thread() is threading.main_thread():
        for number in numbers:
            if signal.getsignal(number) != signal.SIG_IGN:
                former[number] = signal.signal(number, handler)
    try:
        yield
    finally:
        for number, former_handler in former.items():
            signal.signal(number, former_handler)


@dataclass
class StopRequest:
    """A request to stop training, which a signal to this process or to another rank has made. It
    holds the number of the signal."""

    signal_number: int | None = None

    @property
    def is_set(self) -> bool:
        """Whether a signal has arrived, on this rank or another rank."""
        return self.signal_number is not None

    def leave(self) -> None:
        """Raise `KeyboardInterrupt` (exit code 130) for SIGINT, or `SystemExit` (128 + signal
        number) for another signal."""
        if self.signal_number == signal.SIGINT:
            raise KeyboardInterrupt
        if self.signal_number is not None:
            raise SystemExit(128 + self.signal_number)


@contextmanager
def record_signals() -> Iterator[StopRequest]:
    """Record SIGINT, SIGTERM and SIGHUP inside the block, so that training can finish its update
    and save the state. The second signal ends the process at once."""
    request = StopRequest()
    num_signals = 0

    def record(signal_number: int, frame: FrameType | None) -> None:
        nonlocal num_signals
        num_signals += 1
        request.signal_number = signal_number
        if num_signals > 1:  # `is_set` may be true because of another rank
            request.leave()
        # The log is not reentrant, and the signal may have interrupted it. So the message is
        # written directly.
        name = signal.Signals(signal_number).name
        with suppress(OSError):  # after SIGHUP the terminal is closed
            os.write(2, f"\n{name}: finishing this update, then saving\n".encode())

    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        text = (
            "SIGINT is ignored, as in every background job of a script; to stop, run: kill -TERM %d"
        )
        log.info(text, os.getpid())
    with handle_signals((signal.SIGINT, signal.SIGTERM, signal.SIGHUP), record):
        yield request
