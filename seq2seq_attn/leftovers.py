"""Temporary files and folders: their names, their locks, and the removal of those that killed
processes have left."""

import fcntl
import glob
import os
import secrets
import shutil
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from seq2seq_attn.errors import UsageError

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


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """Add a path to an OSError that has none. For example, a write to a full disk reports no path,
    because it knows only the file descriptor."""
    try:
        yield
    except OSError as error:
        # An error without a number has a message that is already complete.
        if error.filename is None and error.errno is not None:
            error.filename = str(path)
        raise


@contextmanager
def temporary_folder(folder: Path) -> Iterator[Path]:
    """Create a folder beside `folder`, which it will replace, and remove it when the context ends.
    If an OSError inside the context does not name a path, for example because the disk is full,
    `folder` is added to the error."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    temporary = temporary_name(folder)
    temporary.mkdir()
    try:
        with naming(folder), locking(os.open(temporary, os.O_RDONLY)):
            yield temporary
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


@contextmanager
def replaced_folder(folder: Path, patterns: Iterable[str]) -> Iterator[Path]:
    """Replace a folder as a whole: yield a temporary folder, which gets its name if the block
    succeeds. If the process is killed, the folder is old, new or missing, but never mixed.

    Raises UsageError: the folder holds other files than those that match `patterns`.
    """
    folder = Path(os.path.realpath(folder))
    for path in folder.iterdir() if folder.exists() else ():
        if not any(path.match(pattern) for pattern in patterns):
            raise UsageError(f"{path}: would be lost; choose another folder")
    remove_leftovers(folder.parent, glob.escape(folder.name[:50]))
    with temporary_folder(folder) as temporary:
        yield temporary
        swap_folder(temporary, folder)


def swap_folder(temporary: Path, folder: Path) -> None:
    """Give a temporary folder the name `folder`, and remove what had this name before."""
    with temporary_folder(folder) as old:
        with suppress(FileNotFoundError):  # there is none to replace
            folder.rename(old / folder.name)
        temporary.rename(folder)
