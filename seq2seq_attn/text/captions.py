"""Find and read the embedded corpus `captions`: generated German-English captions with gold word
alignments, as text.

Each split has the files `SPLIT.de`, `SPLIT.en` and `SPLIT.links` (Pharaoh format, German position
first), plain or compressed. The links refer to the words of `tokenize_caption`.
"""

import re
from pathlib import Path
from typing import NamedTuple

from seq2seq_attn.errors import UsageError
from seq2seq_attn.files import packaged
from seq2seq_attn.text.corpus import find_text

SPLITS = ("train", "valid", "test")
SOURCE, TARGET = "de", "en"
"""the languages, in the order of the positions in a link"""
_MARKS = re.compile(r"(?=[,.?](?: |$))")


class CaptionFiles(NamedTuple):
    """The files of one split."""

    source: Path
    target: Path
    links: Path


def find_captions(
    folder: Path | None, source_language: str, target_language: str
) -> dict[str, CaptionFiles]:
    """Return the files of each split for either direction of translation. The links have the German
    position first in both directions. Without a `folder`, the files of the embedded corpus are
    returned.

    Raises:
        UsageError: the languages are not German and English.
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
    """Raise UsageError unless the languages are German and English."""
    if {source_language, target_language} != {SOURCE, TARGET}:
        raise UsageError(
            f"captions {source_language!r} -> {target_language!r}: these captions are German and "
            f"English; set data.source_language={SOURCE} and data.target_language={TARGET}"
        )


def tokenize_caption(text: str) -> list[str]:
    """Split a caption at white space. A comma, full stop or question mark at the end of a word is a
    separate token."""
    return _MARKS.sub(" ", text).split()


def swap_links(line: str) -> str:
    """Exchange the two positions of each link in a line."""
    return " ".join("-".join(reversed(link.split("-"))) for link in line.split())
