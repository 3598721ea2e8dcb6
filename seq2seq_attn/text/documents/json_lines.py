"""JSON lines: an object per line, of which one field is a text."""

import json
import re
from collections.abc import Iterator

from seq2seq_attn.errors import UsageError
from seq2seq_attn.text.documents.base import Text

_STRING = r'("(?:[^"\\]|\\.)*")'
_FIELD = re.compile(rf"{_STRING}\s*:\s*{_STRING}")
_LINE = re.compile(r"[^\r\n]+")


def find_texts(document: str, field: str) -> Iterator[Text]:
    """Yield the text of the field in each line.

    Raises:
        UsageError: `field` is empty.
        ValueError: a line is not an object, or does not have the field exactly once, as a text.
    """
    if not field:
        raise UsageError("name the field to translate with --field (field, over HTTP)")
    for number, line in enumerate(_LINE.finditer(document), 1):
        content = line[0].removeprefix("\ufeff")
        if not content.strip():
            continue
        value = json.loads(content)
        fields = _FIELD.finditer(document, *line.span())
        matches = [match for match in fields if json.loads(match[1]) == field]
        texts = [json.loads(match[2]) for match in matches]
        if not isinstance(value, dict) or [value.get(field)] != texts:
            raise ValueError(f"object {number}: expected one text in the field {field!r}")
        yield Text(*matches[0].span(2), texts[0])


def encode(translation: str, original: str) -> str:
    """Return a translation as a JSON string."""
    if translation.split() == json.loads(original).split():
        return original
    return json.dumps(translation, ensure_ascii=original.isascii())
