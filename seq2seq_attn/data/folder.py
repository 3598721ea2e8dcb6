"""A prepared corpus appears under its name when it is complete, or not at all."""

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
"""A temporary folder of this age was left by a killed process."""


def open_if_whole(directory: Path) -> PreparedCorpus | None:
    """The corpus of a folder; None: there is none, or it is damaged."""
    if not directory.exists():
        return None
    try:
        return PreparedCorpus(directory)
    except UserError as error:
        log.info("%s; preparing the data again", str(error).partition(";")[0])
        return None


@contextmanager
def temporary_folder(directory: Path) -> Iterator[Path]:
    """A folder beside `directory`, removed at the end."""
    directory.parent.mkdir(parents=True, exist_ok=True)
    for left_over in directory.parent.glob(".*.tmp"):
        with suppress(FileNotFoundError):  # another process may have finished with it
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
    """Rename a complete folder to its name, unless another process has done so."""
    with suppress(UserError):
        return PreparedCorpus(directory)
    with (
        tempfile.TemporaryDirectory(".tmp", ".", directory.parent) as rubbish,
        suppress(FileNotFoundError),
    ):
        directory.rename(Path(rubbish, "damaged"))  # at once, so that nobody sees it half removed
    try:
        temporary.rename(directory)
    except OSError:  # another process was faster
        if not directory.exists():
            raise
    return PreparedCorpus(directory)
