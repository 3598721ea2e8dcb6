"""The interface of a form of documents: where the texts are, and how translations replace texts."""

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple, Protocol


class Text(NamedTuple):
    """A text of a document, and the characters that its translation replaces.

    These characters, from `start` to `stop`, need not be the characters of the text: a catalogue
    has a place for the translation beside each text.
    """

    start: int
    stop: int
    text: str
    """the text without the markup of the document; each line is translated by itself"""
    group: int | None = None
    """the number of a group of texts, such as the forms of a plural, that are translated all or
    none; None if the text has no group"""
    before: str = ""
    after: str = ""
    """`before` and `after` are markup that is written around the translation"""
    original: str = ""
    """the text with its markup; empty if the document has it from `start` to `stop`"""


class Form(Protocol):
    """A module that reads a form of documents."""

    def find_texts(self, document: str, argument: str) -> Iterator[Text]:
        """Yield the texts of a document in their order. The argument is the name of the field for
        the forms `WITH_FIELDS`, and the languages of the run, as in `de en`, for all other forms.

        Raises:
            ValueError, ExpatError: the document is damaged.
            UserError: the document does not have the field or the languages.
        """

    def encode(self, translation: str, original: str) -> str:
        """Return a translation with the escapes and markup of the document, which are those of the
        original characters of the text. A text that is equal to its translation keeps its
        characters. Raises ValueError if the translation would damage the document."""


def scan(
    pattern: re.Pattern[str], document: str, position: int = 0, expected: str = "an entry of PO"
) -> Iterator[re.Match[str]]:
    """Yield the matches of a pattern from `position` to the end of the document. Each match begins
    where the previous match ends. Raises ValueError if the pattern does not match somewhere; the
    message says what is `expected`."""
    while position < len(document):
        match = pattern.match(document, position)
        if match is None:
            line = document.count("\n", 0, position) + 1
            raise ValueError(f"line {line}: expected {expected}")
        yield match
        position = match.end()


def splice(document: str, translations: Iterable[tuple[Text, str]]) -> str:
    """Return the document with the characters of a translation in place of each text. The texts are
    in the order of the document."""
    pieces = []
    position = 0
    for text, translation in translations:
        pieces += [document[position : text.start], translation]
        position = text.stop
    pieces.append(document[position:])
    return "".join(pieces)
