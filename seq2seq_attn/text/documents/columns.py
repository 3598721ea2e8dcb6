"""Tables with a header, in CSV or TSV, of which one column is a text."""

import re
from collections.abc import Iterator, Sequence

from seq2seq_attn.errors import UsageError
from seq2seq_attn.text.documents.base import Form, Text, scan

_HEAD = re.compile(r"\A[\ufeff\r\n]*(?:sep=([,;\t|])[\r\n]+)?(?=([^\r\n]*))")
"""a byte-order mark, and a line that names the delimiter, before the header"""
_DELIMITERS = ",;\t|"
_SPECIAL = re.compile(r'["\r\n,;\t|]')
"""characters for which a cell needs quotation marks"""


def find_texts(document: str, field: str) -> Iterator[Text]:
    """Yield the cells of one column, without the header.

    A table with the columns `id` and `de`; the field `de` or `2` names the second column:

        id;de
        7;"Ein Hund; eine Katze"

    Args:
        document: the table.
        field: the name of the column, or its number from 1.

    Raises:
        UsageError: no column or several columns have this name or number. If several delimiters
            are possible, the columns by each delimiter count.
        ValueError: a row is damaged, or does not have as many cells as the header.
    """
    head = next(_HEAD.finditer(document))
    delimiter, header = head.groups()
    names = []
    rows = []
    for mark in delimiter or _find_delimiters(header):
        cells = re.findall(f"({_cell(mark)})[{mark}]", f"{header}{mark}")
        for number, cell in enumerate(cells, 1):
            name = _decode(cell).strip()
            names.append(name)
            if field in (name, str(number)):
                rows.append(_row(mark, number, len(cells)))
    if not field or len(rows) != 1:
        raise UsageError(
            f"--field {field!r}: expected one of the columns {', '.join(names)}; a first line "
            "such as sep=; names the delimiter"
        )
    # A last line without a line end is a row too.
    matches = scan(re.compile(rows[0]), f"{document}\n", head.end())
    next(matches)  # the header
    for match in matches:
        yield Text(*match.span(1), _decode(match[1]))


def _find_delimiters(header: str) -> Sequence[str]:
    """Return the most frequent delimiters of a header, several if they are equally frequent. A
    header without delimiters names a single column, so any delimiter fits."""
    most = max(map(header.count, _DELIMITERS))
    if most == 0:
        return ","
    return [mark for mark in _DELIMITERS if header.count(mark) == most]


def _cell(delimiter: str) -> str:
    """Return the pattern of a cell, with or without quotation marks."""
    return rf'(?:"(?:[^"]|"")*"|(?!")[^{delimiter}\r\n]*)'


def _row(delimiter: str, number: int, num_cells: int) -> str:
    """Return the pattern of a row with `num_cells` cells and the line end. The group of the pattern
    is cell `number`, from 1."""
    cell = _cell(delimiter)
    before = f"(?:{cell}[{delimiter}]){{{number - 1}}}"
    after = f"(?:[{delimiter}]{cell}){{{num_cells - number}}}"
    return f"{before}({cell}){after}[\r\n]+"


def _decode(cell: str) -> str:
    """Return the text of a cell."""
    return cell[1:-1].replace('""', '"') if cell.startswith('"') else cell


def encode(translation: str, original: str) -> str:
    """Return a translation as a cell, in quotation marks if the original has quotation marks, or if
    the translation has a delimiter, a line break or a quotation mark."""
    if translation.split() == _decode(original).split():
        return original
    if original.startswith('"') or _SPECIAL.search(translation):
        return '"' + translation.replace('"', '""') + '"'
    return translation


FORM = Form(find_texts, encode)
