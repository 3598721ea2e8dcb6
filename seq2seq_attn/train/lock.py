"""Lock a run directory, so that one training process at a time writes to it."""

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
    """Hold the lock of a run directory, which is created if needed. The system releases the lock when the process ends.
    The file stays: if it were removed, two processes could lock two files of the same name.

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
                f"{run_dir}: in use by another training run (process {file.read().strip() or 'unknown'});"
                " stop it, or choose another --run-dir"
            ) from None
        except OSError as error:
            log.warning("%s: cannot be locked (%s); do not start another training run there", run_dir, error.strerror)
        file.truncate(0)
        file.write(f"{os.getpid()}\n")
        file.flush()
        yield
