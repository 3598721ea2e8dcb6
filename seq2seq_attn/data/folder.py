"""Create and publish the folder of a prepared corpus.

The folder is built under a temporary name and renamed when it is complete, so that no process ever
reads an incomplete corpus.
"""

import logging
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from seq2seq_attn.data.store import PreparedCorpus
from seq2seq_attn.errors import UserError
from seq2seq_attn.files import naming, temporary_name

log = logging.getLogger(__name__)

_STALE_AFTER_S = 24 * 3600.0
"""A temporary folder that is older was left by a killed process and is removed."""


def open_if_whole(directory: Path) -> PreparedCorpus | None:
    """Return the corpus of a folder, or None if the folder does not exist or is damaged."""
    if not directory.exists():
        return None
    try:
        return PreparedCorpus(directory)
    except UserError as error:
        # the advice after the semicolon is for a user, but here the folder is replaced
        log.info("%s; preparing the data again", str(error).partition(";")[0])
        return None


@contextmanager
def temporary_folder(directory: Path) -> Iterator[Path]:
    """Create a folder beside `directory` and remove it when the context ends.

    Folders that killed processes left there are removed too. If an OSError inside the context does
    not name a path, for example because the disk is full, `directory` is added to the error.
    """
    directory.parent.mkdir(parents=True, exist_ok=True)
    for left_over in directory.parent.glob(".*.tmp"):
        with suppress(FileNotFoundError):  # another process may remove it too
            if time.time() - left_over.stat().st_mtime > _STALE_AFTER_S:
                shutil.rmtree(left_over, ignore_errors=True)
    temporary = temporary_name(directory)
    temporary.mkdir()
    try:
        with naming(directory):
            yield temporary
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def publish(temporary: Path, directory: Path) -> PreparedCorpus:
    """Rename the complete folder `temporary` to `directory`, and return its corpus.

    If another process has published the corpus in the meantime, its folder is kept. A damaged
    folder of that name is removed.
    """
    with suppress(UserError):
        return PreparedCorpus(directory)
    # A damaged folder is renamed before it is removed, so that no process sees a part of it.
    with (
        tempfile.TemporaryDirectory(suffix=".tmp", prefix=".", dir=directory.parent) as rubbish,
        suppress(FileNotFoundError),  # there is usually no damaged folder
    ):
        directory.rename(Path(rubbish, "damaged"))
    try:
        temporary.rename(directory)
    except OSError:  # another process may have published the corpus first
        if not directory.exists():
            raise
    return PreparedCorpus(directory)
