"""Create and publish the folder of a prepared corpus.

The folder is built under a temporary name and renamed when it is complete, so that no process ever
reads an incomplete corpus.
"""

import logging
from contextlib import suppress
from pathlib import Path

from seq2seq_attn.data.store import PreparedCorpus
from seq2seq_attn.errors import UserError
from seq2seq_attn.leftovers import temporary_folder

log = logging.getLogger(__name__)


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


def publish(temporary: Path, directory: Path) -> PreparedCorpus:
    """Rename the complete folder `temporary` to `directory`, and return its corpus.

    If another process has published the corpus in the meantime, its folder is kept. A damaged
    folder of that name is removed.
    """
    with suppress(UserError):
        return PreparedCorpus(directory)
    # A damaged folder is renamed before it is removed, so that no process sees a part of it.
    with (
        temporary_folder(directory) as rubbish,
        suppress(FileNotFoundError),  # there is usually no damaged folder
    ):
        directory.rename(rubbish / "damaged")
    try:
        temporary.rename(directory)
    except OSError:  # another process may have published the corpus first
        if not directory.exists():
            raise
    return PreparedCorpus(directory)
