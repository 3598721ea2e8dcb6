"""Find the texts of a document in memory, and put translations in place of the texts."""

import re
from bisect import bisect_left
from codecs import BOM_UTF16_BE, BOM_UTF16_LE
from collections.abc import Sequence
from typing import NamedTuple
from xml.parsers.expat import ExpatError

from seq2seq_attn.config import shorten
from seq2seq_attn.errors import UsageError, UserError
from seq2seq_attn.text.documents.base import Form, Text, splice
from seq2seq_attn.text.documents.forms import FORMS, WITH_FIELDS, load_form
from seq2seq_attn.text.documents.placeholders import has_words, keeps_placeholders

_ENCODINGS = {BOM_UTF16_LE: "utf-16-le", BOM_UTF16_BE: "utf-16-be"}
"""the encoding that each byte-order mark announces"""


class Document(NamedTuple):
    """A decoded document, its texts and the lines of the texts."""

    content: str
    """the characters of the document, with markup"""
    encoding: str
    form: Form
    texts: list[Text]
    """the texts in the order of the document; a text has one line or several"""
    lines: list[Text]
    """the lines of all texts that have words; each line is translated by itself"""
    line_feeds: list[int]
    """the positions of the line feeds in `content`"""

    def line_number(self, text: Text) -> int:
        """Return the number of the line of the document in which a text begins, from 0."""
        return bisect_left(self.line_feeds, text.start)


def parse_document(document: bytes, form: str, field: str, languages: Sequence[str]) -> Document:
    """Find the texts of a document.

    Args:
        document: the bytes of the document, in UTF-8, or in UTF-16 with a byte-order mark.
        form: the suffix that names the form of the document, a key of `FORMS`.
        field: the field whose values are the texts, for the forms `WITH_FIELDS`.
        languages: the source language and the target language of the run.

    Raises:
        UsageError: the form is unknown, a field is named for a form without fields, or the
            document does not have the field.
        UserError: the document is damaged, in languages other than those of the run, or not text
            in UTF-8 or UTF-16.
        TypeError: the document is not bytes.
    """
    if not isinstance(document, bytes):
        raise TypeError(
            f"document: expected bytes, got {type(document)}; write TEXT.encode(), or "
            "Path(NAME).read_bytes() for a file"
        )
    if form not in FORMS:
        raise UsageError(f"{form}: expected {', '.join(FORMS)}")
    check_field(form, field)
    # A form with fields needs the name of the field; other forms check the languages.
    argument = field if form in WITH_FIELDS else " ".join(languages)
    encoding = _ENCODINGS.get(document[:2], "utf-8")
    module = load_form(form)
    try:
        content = document.decode(encoding)
        if "\0" in content:
            raise UnicodeError("a NUL character")
        found = module.find_texts(content, argument)
        texts = [text for text in found if text.text.strip()]
    except (ValueError, RecursionError, ExpatError) as error:
        advice = "convert it to UTF-8" if isinstance(error, UnicodeError) else "correct it"
        raise UserError(f"damaged {form} ({error}); {advice}") from None
    lines = []
    for text in texts:
        lines += [text._replace(text=line.strip()) for line in _lines_with_words(text.text)]
    line_feeds = [match.start() for match in re.finditer("\n", content)]
    return Document(content, encoding, module, texts, lines, line_feeds)


def _lines_with_words(text: str) -> list[str]:
    """Return the lines of a text that have letters besides placeholders."""
    return list(filter(has_words, text.splitlines()))


def check_field(form: str, field: str) -> None:
    """Raise UsageError if a field is named for a form without fields."""
    if field and form not in WITH_FIELDS:
        raise UsageError(f"--field {field!r}: only {', '.join(WITH_FIELDS)} have fields")


def replace_texts(document: Document, translations: Sequence[str]) -> tuple[bytes, list[str]]:
    """Put translations in place of the texts of a document.

    A text stays if the translation of a line is empty, if the translation loses a placeholder or
    markup, or if another text of the group stays.

    Args:
        document: the parsed document.
        translations: the translation of each of `document.lines`; empty for a line without one.

    Returns:
        The bytes of the document, and a message for each text that stays.
    """
    edits = {}
    failed_groups = set()
    start = 0
    for text in document.texts:
        stop = start + len(_lines_with_words(text.text))
        try:
            edits[text] = _encode(document, text, translations[start:stop])
        except ValueError:
            if text.group is not None:
                failed_groups.add(text.group)
        start = stop
    messages = []
    for text in document.texts:
        if text not in edits or text.group in failed_groups:
            edits.pop(text, None)
            messages.append(f"line {document.line_number(text) + 1}: {shorten(text.text)}")
    return splice(document.content, edits.items()).encode(document.encoding), messages


def _encode(document: Document, text: Text, translations: Sequence[str]) -> str:
    """Return the characters that replace a text.

    Args:
        document: the document of the text.
        text: a text of the document.
        translations: the translation of each line with words. White space at the ends of the lines
            stays.

    Raises:
        ValueError: a translation is empty, loses a placeholder or markup, or cannot be encoded.
    """
    if not all(translations):
        raise ValueError("an empty translation")
    new = ""
    remaining = iter(translations)
    for line in text.text.splitlines(keepends=True):
        if has_words(line):
            line = line.replace(line.strip(), next(remaining), 1)
        new += line
    new.encode(document.encoding)  # refuses half a surrogate pair, which JSON can hold
    if not keeps_placeholders(text.text, new):
        raise ValueError("another placeholder")
    original = text.original or document.content[text.start : text.stop]
    return f"{text.before}{document.form.encode(new, original)}{text.after}"
