"""The words of a run's training text, and the stand-ins that take the place of unknown words.

A word is what stands between spaces, apostrophes, and punctuation marks at its edges. In scripts
without spaces, each character is a word.

A stand-in is a source word that the training text always translates by the same target word, such
as `Luise`, `drei` (three) or `Mann` (man). The model translates a line with stand-ins in place of
unknown words; then their translations give way to the unknown words (`translate/unknown.py`).
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from seq2seq_attn.errors import UserError
from seq2seq_attn.files import write_json

WORDS = "words.json"
"""the file of the words, in a prepared corpus and in a run"""
KINDS = ("number", "code", "name")
_MARKS = r"""!"$%'()*,\-.:;<=>?\[\]^`{|}¡-¿؛،؟۔।॥‐-‧‰-⁞₠-⃏、-〿！-／：-？"""
_UNSPACED = r"ก-໿က-႟ក-៿ぁ-ヿ㐀-鿿豈-﫿"
PATTERN = rf"[{_UNSPACED}]|[^\s{_MARKS}{_UNSPACED}](?:[^\s'’{_UNSPACED}]*[^\s{_MARKS}{_UNSPACED}])?"
"""matches a word of a line, in Python and in JavaScript"""
_WORD = re.compile(PATTERN)
_NUMBER = re.compile(r"[\W\d_]*\d[\W\d_]*")
_CODE = re.compile(r"\d|[@_/\\&+~#]|\w[.:]\w|.\B[A-Z]")
_LEAST_PART = 4
"""minimum number of letters of a known word within a compound or an inflected word"""


class StandIn(NamedTuple):
    """A source word, and the target word that always translates it."""

    source: str
    target: str


class KnownWords(NamedTuple):
    """What a run knows of the words of its source."""

    known: frozenset[str]
    """the words of the training text; a number counts if it occurs several times"""
    numbers: Sequence[StandIn]
    """stand-ins for numbers alone"""
    others: Sequence[StandIn]
    """stand-ins for any word"""
    copied: Sequence[str]
    """the kinds of words that the training text leaves as they are; not in dates or
    transliteration, for example"""

    def as_json(self) -> dict[str, Any]:
        """Return the words as JSON values, sorted."""
        return {**self._asdict(), "known": sorted(self.known)}

    def save(self, path: Path) -> None:
        """Write the words as JSON."""
        write_json(path, self.as_json())

    @classmethod
    def load(cls, path: Path, read: Callable[[Path], bytes]) -> KnownWords:
        """Load a file that `save` wrote. Raises UserError: the file is damaged."""
        try:
            values: Mapping[str, Any] = json.loads(read(path))
            numbers = [StandIn(*map(str, pair)) for pair in values["numbers"]]
            others = [StandIn(*map(str, pair)) for pair in values["others"]]
            return cls(frozenset(values["known"]), numbers, others, values["copied"])
        except UserError:
            raise
        except Exception:  # a damaged file may hold any values
            raise UserError(f"{path}: not a file of words; copy the run again") from None

    def is_copied(self, word: str) -> bool:
        """Return whether texts of this kind leave a word as it is: a number, a code, or a name.

        What begins or ends with a known word is a compound or an inflected word, not a name.
        """
        kind = kind_of(word)
        if kind != "name":
            return kind in self.copied
        parts = []
        for size in range(max(_LEAST_PART, len(word) // 2), len(word)):
            parts += [word[:size], word[-size:]]
        return kind in self.copied and not any(map(self.find_case, parts))

    def find_case(self, word: str) -> str | None:
        """Return the word as the training text writes it: as it is, in lower case, or with a first
        capital. Return None if the training text has none of them."""
        for spelling in (word, word.lower(), word.capitalize()):
            if spelling in self.known:
                return spelling
        return None


def words_in(line: str) -> list[str]:
    """Return the words of a line."""
    return _WORD.findall(line)


def replace_words(line: str, find: Callable[[str], str | None]) -> str:
    """Return the line with other words in place of those for which `find` returns a word."""
    return _WORD.sub(lambda match: find(match[0]) or match[0], line)


def kind_of(word: str) -> str:
    """Return the kind of a word: `number`, `code` (also an address), `name` (with a first capital),
    or `word`."""
    if _NUMBER.fullmatch(word):
        return "number"
    if _CODE.search(word):
        return "code"
    return "name" if word[0].isupper() else "word"
