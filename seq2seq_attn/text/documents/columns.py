"""Tables with a header, in CSV or TSV, of which one column is a text."""

import re
from collections.abc import Iterator

from seq2seq_attn.errors import UsageError
from seq2seq_attn.text.documents.base import Form, Text, scan

_HEAD = re.compile(r"\A[\ufeff\r\n]*(?:sep=([,;\t|])[\r\n]+)?(?=([^\r\n]*))")
"""a byte-order mark, and a line that names the delimiter, before the header"""
_SPECIAL = re.compile(r'["\r\n,;\t|]')
"""characters for which a cell needs quotation marks"""


def find_texts(document: str, field: str) -> Iterator[Text]:
    """Yield the cells of the column with a name, or with a number from 1. The delimiter is named
    before the header, or is the most frequent one in the header.

    Raises:
        UsageError: no column has this name or number, or several have it.
        ValueError: a row is damaged, or does not have as many cells as the header.
    """
    _, named, header, table = _HEAD.split(document, maxsplit=1)
    mark = named or max(",;\t|", key=header.count)
    cell = rf'(?:"(?:[^"]|"")*"|(?!")[^{mark}\r\n]*)'
    cells = re.findall(f"({cell})[{mark}]", f"{header}{mark}")
    names = [_decode(name).strip() for name in cells]
    columns = [at for at, name in enumerate(names) if field in (name, str(at + 1))]
    if not field or len(columns) != 1:
        raise UsageError(f"--field {field!r}: expected one of the columns {', '.join(names)}")
    before = f"(?:{cell}[{mark}]){{{columns[0]}}}"
    after = f"(?:[{mark}]{cell}){{{len(names) - columns[0] - 1}}}"
    row = re.compile(f"{before}({cell}){after}[\r\n]+")
    rows = scan(row, f"{document}\n", len(document) - len(table))
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
