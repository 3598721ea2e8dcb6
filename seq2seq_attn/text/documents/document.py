"""A document in memory: its texts, and its bytes with their translations."""

import re
from bisect import bisect_left
from codecs import BOM_UTF16_BE, BOM_UTF16_LE
from collections.abc import Iterable, Iterator
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
    document: bytes, form: str, field: str = "", languages: tuple[str, str] = ("", "")
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
    replaced = []
    failed_groups = set()
    for place in document.places:
        new = _encode(document, place, _replace_lines(place.text, remaining))
        replaced.append((place, new))
        if new is None:
            failed_groups.add(place.group)
    edits = []
    messages = []
    for place, new in replaced:
        if new is None or place.group in failed_groups - {None}:
            messages.append(f"line {document.line(place) + 1}: {shorten(place.text)}")
        else:
            edits.append((place, new))
    return splice(document.content, edits).encode(document.encoding), messages


def _replace_lines(text: str, translations: Iterator[str]) -> str:
    """Return a text whose lines with words are replaced by the next translations. White space at
    the ends of lines stays. Return an empty string if a translation is empty."""
    pieces = []
    is_complete = True
    for piece in text.splitlines(keepends=True):
        line = piece.strip()
        if has_words(line):
            translation = next(translations)
            is_complete &= bool(translation)
            piece = piece.replace(line, translation, 1)
        pieces.append(piece)
    return "".join(pieces) if is_complete else ""


def _encode(document: Document, place: Text, translation: str) -> str | None:
    """Return the characters that replace a text, or None if it must stay untranslated."""
    if not translation:
        return None
    if has_words(place.text) and not keeps_placeholders(place.text, translation):
        return None
    original = place.original or document.content[place.start : place.stop]
    try:
        return f"{place.before}{document.form.encode(translation, original)}{place.after}"
    except ValueError:
        return None
