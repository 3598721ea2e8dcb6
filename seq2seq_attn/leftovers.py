"""Temporary files and folders: their names, their locks, and the removal of those that killed
processes have left."""

import fcntl
import os
import secrets
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

_UNLOCKED_S = 60.0
"""A temporary file that is younger may be about to be locked."""


def temporary_name(path: Path) -> Path:
    """Return a new path next to `path` for a temporary file that will replace `path`. The module
    `tempfile` is not used because it ignores the umask of the user."""
    prefix = path.name[:50]  # names have at most 255 bytes
    return path.with_name(f".{prefix}.{secrets.token_hex(4)}.tmp")


@contextmanager
def locking(descriptor: int) -> Iterator[None]:
    """Lock a temporary file or folder while it is used, and close its descriptor in the end."""
    try:
        with suppress(OSError):  # not every file system has locks
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        os.close(descriptor)


def remove_leftovers(folder: Path, pattern: str) -> None:
    """Remove temporary files and folders that killed processes have left in a folder; they were to
    replace a name that matches `pattern`. A living process has locked its own."""
    for leftover in folder.glob(f".{pattern}.????????.tmp"):
        with suppress(OSError):  # it is locked, or another process has removed it
            if time.time() - leftover.lstat().st_mtime < _UNLOCKED_S:
                continue
            descriptor = os.open(leftover, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if leftover.is_dir():
                    shutil.rmtree(leftover)
                else:
                    leftover.unlink()
            finally:
                os.close(descriptor)
