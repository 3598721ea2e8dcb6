"""The embedded corpus `captions`: generated German-English captions with gold word alignments, as
text.

Each split is `SPLIT.de`, `SPLIT.en` and `SPLIT.links` (Pharaoh format, German first), plain or
gzipped. Links number the words of `tokenize_caption`.
"""

import re
from pathlib import Path
from typing import NamedTuple

from seq2seq_attn.errors import UsageError
from seq2seq_attn.files import packaged
from seq2seq_attn.text.corpus import find_text

SPLITS = ("train", "valid", "test")
SOURCE, TARGET = "de", "en"
"""the languages, in the order in which the links number them"""
_MARKS = re.compile(r"(?=[,.?](?: |$))")


class CaptionFiles(NamedTuple):
    """The files of a split."""

    source: Path
    target: Path
    links: Path


def find_captions(
    folder: Path | None, source_language: str, target_language: str
) -> dict[str, CaptionFiles]:
    """The files of each split, in either direction; the links are those of German to English.
    Without a folder, those of the embedded corpus.

    Raises:
        UsageError: as `check_languages`.
        UserError: a file does not exist.
    """
    check_languages(source_language, target_language)
    folder = folder or packaged("data/captions")
    files = {}
    for split in SPLITS:
        text = find_text(str(folder / split), source_language, target_language, "links")
        files[split] = CaptionFiles(*text.paths)
    return files


def check_languages(source_language: str, target_language: str) -> None:
    """Raises UsageError unless the languages are German and English."""
    if {source_language, target_language} != {SOURCE, TARGET}:
        raise UsageError(
            f"captions {source_language!r} -> {target_language!r}: these captions are German and "
            f"English; set data.source_language={SOURCE} and data.target_language={TARGET}"
        )


def tokenize_caption(text: str) -> list[str]:
    """Words at white space, with the comma, full stop or question mark behind a word split off."""
    return _MARKS.sub(" ", text).split()


def swap_links(line: str) -> str:
    """A line of links with the positions of the other side first."""
    return " ".join("-".join(reversed(link.split("-"))) for link in line.split())
