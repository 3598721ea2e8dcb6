"""The forms of documents: where their texts are, and how translations replace them."""

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple


class Text(NamedTuple):
    """A text of a document. Its translation replaces the characters from `start` to `stop`."""

    start: int
    stop: int
    text: str


class Form(NamedTuple):
    """A form of documents."""

    find: Callable[[str, str], Iterator[Text]]
    """yields the texts of a document in their order, given a field; raises ValueError if
    the document is damaged"""
    encode: Callable[[str, str], str]
    """returns the characters of a translation, given the characters that it replaces; a text that
    is its own translation keeps its characters"""


def splice(document: str, translations: Iterable[tuple[Text, str]]) -> str:
    """Return the document with new characters for each text. Texts are in the document's order."""
    pieces = []
    position = 0
    for text, new in translations:
        pieces += [document[position : text.start], new]
        position = text.stop
    pieces.append(document[position:])
    return "".join(pieces)
