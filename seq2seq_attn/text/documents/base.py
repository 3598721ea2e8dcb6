"""The forms of documents: where their texts are, and how translations are written in their place."""

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple


class Edit(NamedTuple):
    """Characters of a document that are replaced."""

    start: int
    stop: int
    new: str


class Text(NamedTuple):
    """A text of a document. Its translation replaces the characters from `start` to `stop`."""

    start: int
    stop: int
    text: str


class Form(NamedTuple):
    """A form of documents."""

    find: Callable[[str, str], Iterator[Text]]
    """yields the texts of a document in their order, given a column or field; raises ValueError if
    the document is damaged"""
    encode: Callable[[str, str], str]
    """returns the characters of a translation, given the characters that it replaces; a text that
    is its own translation keeps its characters"""


def splice(document: str, edits: Iterable[Edit]) -> str:
    """Return the document with all edits applied. Edits do not overlap."""
    pieces = []
    position = 0
    for edit in sorted(edits):
        pieces.append(document[position : edit.start])
        pieces.append(edit.new)
        position = edit.stop
    pieces.append(document[position:])
    return "".join(pieces)
