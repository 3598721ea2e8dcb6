"""A document in memory: its texts, and its bytes with their translations."""

import re
from bisect import bisect_left
from codecs import BOM_UTF16_BE, BOM_UTF16_LE
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple
from xml.parsers.expat import ExpatError

from seq2seq_attn.config import shorten
from seq2seq_attn.errors import UsageError, UserError
from seq2seq_attn.text.documents.base import Form, Text, splice
from seq2seq_attn.text.documents.forms import FORMS, WITH_FIELDS
from seq2seq_attn.text.documents.placeholders import has_words, keeps_placeholders

_ENCODINGS = {BOM_UTF16_LE: "utf-16-le", BOM_UTF16_BE: "utf-16-be"}
"""encodings by their byte-order mark"""


class Document(NamedTuple):
    """A document and its texts."""

    content: str
    encoding: str
    form: Form
    places: list[Text]
    """the texts as the form finds them, of one line or several"""
    texts: list[Text]
    """the lines with words of all places, in their order: each is translated by itself"""
    breaks: list[int]
    """the positions of the line feeds"""

    def line(self, text: Text) -> int:
        """Return the line number of a text, from 0."""
        return bisect_left(self.breaks, text.start)


def parse_document(
    document: bytes, form: str, field: str = "", languages: Sequence[str] = ()
) -> Document:
    """Find the texts of a document, with the arguments of `translate_document`, and the languages
    of the run.

    Raises:
        UsageError: the form is unknown, or the field is not in the document.
        UserError: the document is damaged, in other languages, or not text in UTF-8 or UTF-16.
    """
    if form not in FORMS:
        raise UsageError(f"{form}: expected {', '.join(FORMS)}")
    check_field(form, field)
    option = field if form in WITH_FIELDS else " ".join(languages)
    encoding = _ENCODINGS.get(document[:2], "utf-8")
    try:
        content = document.decode(encoding)
        if "\0" in content:
            raise ValueError("a NUL character")
        places = [text for text in FORMS[form].find(content, option) if text.text.strip()]
    except (ValueError, RecursionError, ExpatError) as error:
        raise UserError(f"damaged {form} ({error}); correct it, or convert it to UTF-8") from None
    texts = []
    for place in places:
        for line in filter(has_words, place.text.splitlines()):
            texts.append(place._replace(text=line.strip()))
    breaks = [match.start() for match in re.finditer("\n", content)]
    return Document(content, encoding, FORMS[form], places, texts, breaks)


def check_field(form: str, field: str) -> None:
    """Raise UsageError if there is a field for a form that has no fields."""
    if field and form not in WITH_FIELDS:
        raise UsageError(f"{form}, --field {field!r}: give it only for {', '.join(WITH_FIELDS)}")


def replace_texts(document: Document, translations: Iterable[str]) -> tuple[bytes, list[str]]:
    """Return the bytes of the document with translations in place of its texts, and a message for
    each place that stays, because a translation is empty or loses a placeholder or markup."""
    remaining = iter(translations)
    edits = {}
    failed = set()
    for place in document.places:
        try:
            edits[place] = _encode(document, place, remaining)
        except ValueError:
            failed.add(place.group or place)
    messages = []
    for place in document.places:
        if (place.group or place) in failed:
            edits.pop(place, None)
            messages.append(f"line {document.line(place) + 1}: {shorten(place.text)}")
    return splice(document.content, edits.items()).encode(document.encoding), messages


def _encode(document: Document, place: Text, translations: Iterator[str]) -> str:
    """Return the characters that replace a text, whose lines with words have the next translations.
    White space at the ends of lines stays. Raises ValueError if the text must stay."""
    new = ""
    is_complete = True
    for piece in place.text.splitlines(keepends=True):
        line = piece.strip()
        if has_words(line):
            translation = next(translations)
            is_complete &= bool(translation)
            piece = piece.replace(line, translation, 1)
        new += piece
    new.encode(document.encoding)  # refuses half a surrogate pair, which JSON can hold
    if not is_complete or not keeps_placeholders(place.text, new):
        raise ValueError
    original = place.original or document.content[place.start : place.stop]
    return f"{place.before}{document.form.encode(new, original)}{place.after}"
