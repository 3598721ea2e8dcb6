"""A document in memory: its texts, and its bytes with their translations."""

from codecs import BOM_UTF16_BE, BOM_UTF16_LE
from collections.abc import Iterable
from typing import NamedTuple

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
    texts: list[Text]
    """the texts that have words, in their order"""

    def line(self, text: Text) -> int:
        """Return the line number of a text, from 0."""
        return self.content.count("\n", 0, text.start)


def parse_document(document: bytes, form: str, field: str = "") -> Document:
    """Find the texts of a document, with the arguments of `translate_document`.

    Raises:
        UsageError: the form is unknown, or has or lacks a field.
        UserError: the document is damaged, or not text in UTF-8 or UTF-16.
    """
    if form not in FORMS:
        raise UsageError(f"{form}: expected {', '.join(FORMS)}")
    check_field(form, field)
    encoding = _ENCODINGS.get(document[:2], "utf-8")
    try:
        content = document.decode(encoding)
        if "\0" in content:
            raise ValueError("a NUL character")
        texts = [text for text in FORMS[form].find(content, field) if has_words(text.text)]
    except ValueError as error:
        raise UserError(f"damaged {form} ({error}); correct it, or convert it to UTF-8") from None
    return Document(content, encoding, FORMS[form], texts)


def check_field(form: str, field: str) -> None:
    """Raise UsageError unless there is a field for exactly the forms that have fields."""
    if bool(field) != (form in WITH_FIELDS):
        raise UsageError(
            f"{form}, --field {field!r}: give --field NAME for {', '.join(WITH_FIELDS)}, and for "
            "no other form"
        )


def replace_texts(document: Document, translations: Iterable[str]) -> tuple[bytes, list[str]]:
    """Return the bytes of the document with translations in place of its texts, and a message for
    each text that stays, because its translation is empty or loses a placeholder or a tag."""
    edits = []
    messages = []
    for text, translation in zip(document.texts, translations, strict=True):
        if not translation or not keeps_placeholders(text.text, translation):
            messages.append(f"line {document.line(text) + 1}: {shorten(text.text)}")
            continue
        original = document.content[text.start : text.stop]
        edits.append((text, document.form.encode(translation, original)))
    return splice(document.content, edits).encode(document.encoding), messages
