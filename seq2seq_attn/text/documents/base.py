"""The forms of documents: where their texts are, and how translations replace them."""

import re
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple


class Text(NamedTuple):
    """A text of a document. Its translation replaces the characters from `start` to `stop`, which
    need not be those of the text: a catalogue has a place for the translation beside each text."""

    start: int
    stop: int
    text: str
    """the text without markup of the document; each of its lines is translated by itself"""
    group: int | None = None
    """texts of a group, such as the forms of a plural, are translated all or none"""
    before: str = ""
    after: str = ""
    """characters of the document that enclose the translation"""
    original: str = ""
    """the characters of the text with their markup, if they are not those from start to stop"""


class Form(NamedTuple):
    """A form of documents."""

    find: Callable[[str, str], Iterator[Text]]
    """yields the texts of a document in their order, given the field in forms
    `WITH_FIELDS`, in others the languages of the run, as in `de en`; raises ValueError or
    ExpatError if the document is damaged, and UserError if it lacks the field or the languages"""
    encode: Callable[[str, str], str]
    """returns the characters of a translation, given the original characters of the text; a text
    that is its own translation keeps its characters; raises ValueError if the translation would
    damage the document"""


def scan(pattern: re.Pattern[str], document: str, position: int = 0) -> Iterator[re.Match[str]]:
    """Yield the matches of a pattern, each of which begins where the last one ends. Raise
    ValueError if they do not reach the end of the document."""
    while position < len(document):
        match = pattern.match(document, position)
        if match is None:
            line = document.count("\n", 0, position) + 1
            raise ValueError(f"line {line}")
        yield match
        position = match.end()


def splice(document: str, translations: Iterable[tuple[Text, str]]) -> str:
    """Return the document with new characters for each text. Texts are in the document's order."""
    pieces = []
    position = 0
    for text, new in translations:
        pieces += [document[position : text.start], new]
        position = text.stop
    pieces.append(document[position:])
    return "".join(pieces)
