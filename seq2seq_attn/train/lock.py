"""A lock on a run directory: one training at a time writes there."""

from __future__ import annotations

import fcntl
import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from seq2seq_attn.errors import UserError
from seq2seq_attn.run_dir import LOCK

log = logging.getLogger(__name__)


@contextmanager
def locked(run_dir: Path) -> Iterator[None]:
    """Hold the lock of a run directory, made if it is not there. The system takes the lock back when the process ends,
    however it ends. The file stays: were it removed, two processes could lock two files of the same name.

    Raises:
        UserError: another process holds it.
    """
    run_dir.mkdir(parents=True, exist_ok=True)
    with (run_dir / LOCK).open("a+") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.seek(0)
            raise UserError(
                f"{run_dir}: another training writes there (process {file.read().strip() or 'unknown'});"
                " stop it, or choose another --run-dir"
            ) from None
        except OSError as error:
            log.warning("%s: cannot be locked (%s); start no second training there", run_dir, error.strerror)
        file.truncate(0)
        file.write(f"{os.getpid()}\n")
        file.flush()
        yield
