"""Tables with a header, in CSV or TSV, of which one column is a text."""

import re
from collections.abc import Iterator

from seq2seq_attn.errors import UsageError
from seq2seq_attn.text.documents.base import Form, Text, scan

_HEAD = re.compile(r"\A[\ufeff\r\n]*(?:sep=([,;\t|])[\r\n]+)?(?=([^\r\n]*))")
"""a byte-order mark, and a line that names the delimiter, before the header"""
_MARKS = ",;\t|"
_SPECIAL = re.compile(r'["\r\n,;\t|]')
"""characters for which a cell needs quotation marks"""


def find_texts(document: str, field: str) -> Iterator[Text]:
    """Yield the cells of the column with a name, or with a number from 1. The delimiter is named
    before the header, or is the most frequent one in the header.

    Raises:
        UsageError: no column has this name or number, or several have it, also with several
            equally frequent delimiters.
        ValueError: a row is damaged, or does not have as many cells as the header.
    """
    _, named, header, table = _HEAD.split(document, maxsplit=1)
    most = max(1, *map(header.count, _MARKS))
    choices = []
    columns = []
    for mark in named or [mark for mark in _MARKS if header.count(mark) == most] or ",":
        cell = rf'(?:"(?:[^"]|"")*"|(?!")[^{mark}\r\n]*)'
        cells = re.findall(f"({cell})[{mark}]", f"{header}{mark}")
        for at, name in enumerate(cells, 1):
            columns.append(_decode(name).strip())
            if field in (columns[-1], str(at)):
                before = f"(?:{cell}[{mark}]){{{at - 1}}}"
                after = f"(?:[{mark}]{cell}){{{len(cells) - at}}}"
                choices.append(f"{before}({cell}){after}[\r\n]+")
    if not field or len(choices) != 1:
        raise UsageError(
            f"--field {field!r}: expected one of the columns {', '.join(columns)}; a first line "
            "such as sep=; names the delimiter"
        )
    rows = scan(re.compile(choices[0]), f"{document}\n", len(document) - len(table))
    next(rows)
    for match in rows:
        yield Text(*match.span(1), _decode(match[1]))


def _decode(cell: str) -> str:
    """Return the text of a cell."""
    return cell[1:-1].replace('""', '"') if cell.startswith('"') else cell


def encode(translation: str, original: str) -> str:
    """Return a translation as a cell, in quotation marks if the original has them or the cell needs
    them."""
    if translation.split() == _decode(original).split():
        return original
    if original.startswith('"') or _SPECIAL.search(translation):
        return '"' + translation.replace('"', '""') + '"'
    return translation


TABLES = Form(find_texts, encode)
