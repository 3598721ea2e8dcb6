"""A session of a training run: its clock, signals, CPU threads, and the lock on its directory.

Ctrl-C, SIGTERM and SIGHUP end training after the current update, with a saved state. The first signal is only recorded;
the training loop checks `StopRequest.is_set` between updates. At the second signal the process exits at once. The last
saved state stays valid in any case.

A signal that was ignored when the process started stays ignored. `nohup` ignores SIGHUP so that its command outlives
the terminal, and a shell without job control ignores SIGINT for commands started with `&` (POSIX, section 2.11),
because Ctrl-C is meant for the foreground command but reaches all processes of the terminal.
"""

from __future__ import annotations

import fcntl
import logging
import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType

import torch

from seq2seq_attn.config import Config
from seq2seq_attn.data.store import PreparedCorpus
from seq2seq_attn.errors import UserError
from seq2seq_attn.model.build import count_parameters, model_without_weights
from seq2seq_attn.run_dir import LOCK, RunDir
from seq2seq_attn.runtime.cpus import num_available_cpus
from seq2seq_attn.runtime.device import resolve_device
from seq2seq_attn.runtime.memory import give_back_memory
from seq2seq_attn.runtime.threads import Watch, choose_threads, is_set_by_user, set_threads
from seq2seq_attn.text.tokenizers.several import vector_sizes
from seq2seq_attn.train import checkpoint
from seq2seq_attn.train.distributed import Group

log = logging.getLogger(__name__)

GIVE_BACK_EVERY_S = 15.0
"""During hours of training the heap fragments: small allocations that stay (mostly compiled primitives) end up behind
large blocks. Memory that was returned must be allocated and cleared again, so this is not done after every update."""
_FEWER_THREADS = "interrupt training, and resume it with a lower --set train.num_threads"


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


@contextmanager
def locked(run_dir: Path, *, work: str = "training run", option: str = "--run-dir") -> Iterator[None]:
    """Hold the lock of a run directory, which is created if needed. One training process at a time writes to it, or
    does other `work` in a folder that an `option` names. The
    system releases the lock when the process ends. The file stays: if it were removed, two processes could lock two
    files of the same name.

    Raises:
        UserError: another process holds the lock.
    """
    run_dir.mkdir(parents=True, exist_ok=True)
    with (run_dir / LOCK).open("a+") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.seek(0)
            raise UserError(
                f"{run_dir}: in use by another {work} (process {file.read().strip() or 'unknown'});"
                f" stop it, or choose another {option}"
            ) from None
        except OSError as error:
            log.warning("%s: cannot be locked (%s); do not start another %s there", run_dir, error.strerror, work)
        file.truncate(0)
        file.write(f"{os.getpid()}\n")
        file.flush()
        yield


class Session:
    """The clock, the stop request and the machine of a process. Each rank has its own."""

    def __init__(self, stop: StopRequest, group: Group, *, device: torch.device, elapsed_s: float) -> None:
        """`elapsed_s`: the seconds of earlier sessions."""
        self.stop = stop
        self._group = group
        self._gave_back_at = time.monotonic()
        self._began_at = self._gave_back_at - elapsed_s
        self._watch = Watch(torch.get_num_threads() if device.type == "cpu" else 1, fix=_FEWER_THREADS)

    @property
    def elapsed_s(self) -> float:
        """Seconds of training, earlier sessions included."""
        return time.monotonic() - self._began_at

    def check_machine(self) -> None:
        """Warn if other processes need the CPUs, and return free memory to the system; neither after every update."""
        self._watch.check()
        if time.monotonic() - self._gave_back_at >= GIVE_BACK_EVERY_S:
            give_back_memory()
            self._gave_back_at = time.monotonic()

    def sync_ranks(self, elapsed_s: float) -> tuple[float, bool]:
        """The latest clock of all ranks, and whether any rank has to stop, for a signal or because `torchrun` is gone.
        All ranks must end the loop after the same update."""
        if self._group.is_orphaned and not self.stop.is_set:
            log.error("torchrun (process %d) is gone: saving, then exiting", self._group.launcher)
            self.stop.signal_number = signal.SIGTERM
        elapsed_s, signal_number = self._group.elementwise_max([elapsed_s, self.stop.signal_number or 0])
        if signal_number:
            self.stop.signal_number = int(signal_number)
        return elapsed_s, signal_number > 0


def set_num_threads(config: Config, prepared: PreparedCorpus, resumed: Path | None) -> None:
    """Set the number of CPU threads: as configured, else as the user has set it, else that of the run that is resumed,
    else chosen by the model's size and the load. Processes of `torchrun` share the CPUs equally."""
    if config.train.num_threads is not None:
        set_threads(config.train.num_threads)
        return
    if is_set_by_user() or resolve_device(config.train.device).type != "cpu":
        return
    if resumed is not None and checkpoint.has_state(last_dir := RunDir(resumed).last_dir):
        before = checkpoint.load_state(last_dir).values["num_threads"]
        if before <= num_available_cpus():
            set_threads(before)
            return
    if (ranks_here := int(os.environ.get("LOCAL_WORLD_SIZE", "1"))) > 1:
        set_threads(max(1, num_available_cpus() // ranks_here))
        return
    sizes = {"num_source_ids": len(prepared.source_vocab), "num_target_ids": len(prepared.target_vocab)}
    vectors = vector_sizes(prepared.source_tokenizer)
    choose_threads(count_parameters(model_without_weights(config.model, **sizes, vector_sizes=vectors)))
