"""The words of a run's training text, and the stand-ins that take the place of unknown words.

Words are separated by spaces and apostrophes, and punctuation marks at their edges do not belong to
them. A minus sign belongs to its number, and so do apostrophes between digits. In scripts without
spaces, each character is a word.

A stand-in is a source word that the training text always translates by the same target word, such
as `Luise`, `drei` (three) or `Mann` (man). The model translates a line with stand-ins in place of
unknown words; then their translations give way to the unknown words (`translate/unknown.py`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import TypeAdapter, ValidationError

from seq2seq_attn.errors import UserError
from seq2seq_attn.files import Read, write_json

WORDS = "words.json"
"""the file of the words, in a prepared corpus and in a run"""
KINDS = ("number", "code", "name")
_MARKS = r"""!"$%'()*,\-.:;<=>?\[\]^`{|}¡-±´-¸»¿؛،؟۔।॥‐-‧‰-⁞₠-⃏、-〿！-／：-？"""
_UNSPACED = r"ก-໿က-႟ក-៿ぁ-ヿ㐀-鿿豈-﫿"
_WITHIN = rf"[^\s'’{_UNSPACED}]*"
_EDGE = rf"[^\s{_MARKS}{_UNSPACED}]"
_PLACEHOLDER = r"%(?:\(\w+\)|\d+\$)?[sdifu@](?!\w)|\$?\{\w*\}"
PATTERN = (
    rf"{_PLACEHOLDER}|[{_UNSPACED}]|(?:(?<![^\s(])[\-–](?=[0-9]))?{_EDGE}"
    rf"(?:{_WITHIN}(?:(?<=[0-9])['’](?=[0-9]){_WITHIN})*{_EDGE})?"
)
"""matches a word of a line, in Python and in JavaScript"""
_WORD = re.compile(PATTERN)
_NUMBER = re.compile(r"[\W\d_]*\d[\W\d_]*")
_CODE = re.compile(r"\d|[%{@_/\\&+~#]|\w[.:]\w|.\B[A-Z]")
_LEAST_PART = 4
"""minimum number of letters of a known word within a compound or an inflected word"""


class StandIn(NamedTuple):
    """A source word, and the target word that always translates it."""

    source: str
    target: str


class KnownWords(NamedTuple):
    """The words of a run's training text, and the stand-ins that were found in it."""

    known: frozenset[str]
    """the words of the source side; a number is known only if it occurs several times"""
    numbers: Sequence[StandIn]
    """stand-ins that only take the place of numbers"""
    others: Sequence[StandIn]
    """stand-ins that take the place of any word"""
    copied: Sequence[str]
    """the kinds of words that the training text leaves as they are. A text of dates, for example,
    rewrites numbers"""

    def as_json(self) -> dict[str, Any]:
        """Return the words as JSON values, sorted."""
        return {**self._asdict(), "known": sorted(self.known)}

    def save(self, path: Path) -> None:
        """Write the words as JSON."""
        write_json(path, self.as_json())

    @classmethod
    def load(cls, path: Path, read: Read) -> KnownWords:
        """Load a file that `save` wrote. Raises UserError: the file is damaged."""
        try:
            return _ADAPTER.validate_json(read(path))
        except ValidationError:
            raise UserError(f"{path}: not a file of words; copy the run again") from None

    def is_copied(self, word: str) -> bool:
        """Return whether the training text leaves words like this word as they are: numbers, codes
        or names.

        A word with a first capital is a compound or an inflected word, not a name, if it begins or
        ends with a known word.
        """
        kind = kind_of(word)
        if kind == "name":
            for size in range(max(_LEAST_PART, len(word) // 2), len(word)):
                if self.find_case(word[:size]) or self.find_case(word[-size:]):
                    return False
        return kind in self.copied

    def find_case(self, word: str) -> str | None:
        """Return the word as the training text writes it: as it is, in lower case, or with a first
        capital. Return None if the training text has none of them."""
        for spelling in (word, word.lower(), word.capitalize()):
            if spelling in self.known:
                return spelling
        return None


_ADAPTER = TypeAdapter(KnownWords)
"""checks the values of a file"""


def words_in(line: str) -> list[str]:
    """Return the words of a line."""
    return _WORD.findall(line)


def replace_words(line: str, find: Callable[[str], str | None]) -> str:
    """Return the line with other words in place of those for which `find` returns a word."""
    return _WORD.sub(lambda match: find(match[0]) or match[0], line)


def kind_of(word: str) -> str:
    """Return the kind of a word: `number`, `code` (for example an address), `name` (any other word
    with a first capital), or `word`."""
    if _NUMBER.fullmatch(word):
        return "number"
    if _CODE.search(word):
        return "code"
    return "name" if word[0].isupper() else "word"
