"""The words of a run's training text, and the stand-ins that take the place of unknown words.

Words are separated by spaces and apostrophes. Punctuation marks at the edges of a word do not
belong to the word. A minus sign belongs to its number, and so do apostrophes between digits. In
scripts without spaces, each character is a word.

A stand-in is a source word that the training text always translates by the same target word, such
as `Luise`, `drei` (three) or `Mann` (man). The model translates a line with stand-ins in place of
unknown words; then the unknown words replace the translations of the stand-ins
(`translate/unknown.py`).
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
"""the kinds of words that a text may leave as they are"""
# Punctuation marks and currencies, which are never at the edge of a word: the word in `$5` is `5`.
_MARKS = r"""!"$%'()*,\-.:;<=>?\[\]^`{|}¡-±´-¸»¿؛،؟۔।॥‐-‧‰-⁞₠-⃏、-〿！-／：-？"""
_UNSPACED = r"ก-໿က-႟ក-៿ぁ-ヿ㐀-鿿豈-﫿"
"""letters of Thai, Lao, Burmese, Khmer, Japanese and Chinese"""
_WITHIN = rf"[^\s'’{_UNSPACED}]*"
"""matches characters inside a word"""
_EDGE = rf"[^\s{_MARKS}{_UNSPACED}]"
"""matches the first or the last character of a word"""
_PLACEHOLDER = r"%(?:\(\w+\)|\d+\$)?[sdifu@](?!\w)|\$?\{\w*\}"
"""matches `%s`, `%(name)s`, `%1$s`, `{}`, `{name}` and `${name}`"""
PATTERN = (
    rf"{_PLACEHOLDER}|[{_UNSPACED}]|(?:(?<![^\s(])[\-–](?=[0-9]))?{_EDGE}"
    rf"(?:{_WITHIN}(?:(?<=[0-9])['’](?=[0-9]){_WITHIN})*{_EDGE})?"
)
"""matches a word of a line, in Python and in JavaScript: a placeholder, a letter of a script
without spaces, or characters such as `T-Shirt`, `-5`, `1'000` and `www.x.org`, whose edges are no
marks"""
_WORD = re.compile(PATTERN)
_NUMBER = re.compile(r"[\W\d_]*\d[\W\d_]*")
"""matches digits with other characters than letters: `3`, `-5`, `10:30`, `2_000`"""
_CODE = re.compile(r"\d|[%{@_/\\&+~#]|\w[.:]\w|.\B[A-Z]")
"""is found in `B52`, `%s`, `me@x`, `and/or`, `www.x.org` and `iPhone`, but not in `T-Shirt`"""
_MIN_PART_LENGTH = 4
"""minimum number of letters of a known word within a compound or an inflected word"""


class StandIn(NamedTuple):
    """A source word, and the target word that always translates it."""

    source: str
    target: str


class KnownWords(NamedTuple):
    """The words of a run's training text, and the stand-ins that the training text has."""

    known: frozenset[str]
    """the words of the source side; a number is known only if it occurs several times"""
    numbers: Sequence[StandIn]
    """stand-ins that only take the place of numbers"""
    others: Sequence[StandIn]
    """stand-ins that take the place of any word"""
    copied: Sequence[str]
    """the `KINDS` of words that the targets of the training text have as the sources do. A text
    that translates dates, for example, rewrites numbers. `numbers` is in the list too if no source
    line consists of numbers alone, so that such a line stays as it is"""

    def as_json(self) -> dict[str, Any]:
        """Return the words as JSON values; `known` is sorted."""
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
        """Return whether translations should have this unknown word as it is, because the training
        text leaves words of the same kind (a number, code or name) as they are.

        A word with a first capital is a compound or an inflected word, not a name, if it begins or
        ends with a known word, as `Hundehütte` begins with `Hunde`. The known word must have at
        least half of the letters, because many names begin with a short word by chance.
        """
        kind = kind_of(word)
        if kind == "name":
            for size in range(max(_MIN_PART_LENGTH, len(word) // 2), len(word)):
                if self.find_spelling(word[:size]) or self.find_spelling(word[-size:]):
                    return False
        return kind in self.copied

    def find_spelling(self, word: str) -> str | None:
        """Return the spelling of a word that the training text has: the word as it is, in lower
        case, or with a first capital. Return None for an unknown word."""
        for spelling in (word, word.lower(), word.capitalize()):
            if spelling in self.known:
                return spelling
        return None


_ADAPTER = TypeAdapter(KnownWords)
"""checks the values in the file `WORDS`"""


def words_in(line: str) -> list[str]:
    """Return the words of a line."""
    return _WORD.findall(line)


def replace_words(line: str, find: Callable[[str], str | None]) -> str:
    """Replace each word of a line by the word that `find` returns for it. The word stays if `find`
    returns None."""
    return _WORD.sub(lambda match: find(match[0]) or match[0], line)


def kind_of(word: str) -> str:
    """Return the kind of a word: `number`, `code` (for example an address), `name` (any other word
    with a first capital), or `word`."""
    if _NUMBER.fullmatch(word):
        return "number"
    if _CODE.search(word):
        return "code"
    return "name" if word[0].isupper() else "word"
