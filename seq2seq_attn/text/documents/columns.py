"""Tables with a header, in CSV or TSV, of which one column is a text."""

import logging
import re
from collections.abc import Iterator, Sequence

from seq2seq_attn.config import shorten
from seq2seq_attn.errors import UsageError
from seq2seq_attn.text.documents.base import Text, scan

_HEAD = re.compile(r"\A[\ufeff\r\n]*(?:sep=([,;\t|])[\r\n]+)?(?=([^\r\n]*))")
"""a byte-order mark, and a line that names the delimiter, before the header"""
_DELIMITERS = ",;\t|"
_QUOTED_CELL = re.compile(r'(?m)(?:^|\t)"')
"""the start of a cell of TSV in quotation marks"""
_UNQUOTED = "\n"
"""the character that takes the place of the delimiter before the original of a cell, in TSV without
quotation marks, where a quotation mark is a character of the text"""
_CELL_WITH_LINES = re.compile(r'"[^"]*\n[^"]*"')
"""a cell with line breaks, or a part of such a cell between two quotation marks"""

log = logging.getLogger(__name__)


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
        ValueError: a row is damaged, does not have as many cells as the header, or has a cell that
            holds other rows.
    """
    head = next(_HEAD.finditer(document))
    delimiter, header = head.groups()
    names = []
    rows = []
    for mark in delimiter or _find_delimiters(header):
        cells = re.findall(f"{_spaces(mark)}({_cell(mark)})[{mark}]", f"{header}{mark}")
        for number, cell in enumerate(cells, 1):
            name = _decode(cell).strip()
            names.append(name)
            if field in (name, str(number)):
                rows.append((mark, number, len(cells)))
    if not field or len(rows) != 1:
        value = f"--field {field!r}: " if field else ""
        raise UsageError(
            f"{value}name the column to translate with --field (field, over HTTP): "
            f"{', '.join(names)}; a first line such as sep=; names the delimiter"
        )
    if field not in names:
        message = "column %s: the first row is the header, which stays as it is: %s"
        log.info(message, field, shorten(names))
    mark, _, num_cells = rows[0]
    # A last line without a line end is a row too.
    expected = f"as many cells as in the header, {num_cells}, and no stray quotation mark"
    matches = scan(re.compile(_row(*rows[0])), f"{document}\n", head.end(), expected)
    next(matches)  # the header
    prefix = _UNQUOTED if mark == "\t" and not _QUOTED_CELL.search(document) else mark
    for match in matches:
        for cell in _CELL_WITH_LINES.findall(match[0]):
            if holds_rows(cell, mark, num_cells):
                line = document.count("\n", 0, match.start()) + 1
                raise ValueError(f"line {line}: rows between quotation marks")
        yield Text(*match.span(1), _decode(match[1]), original=prefix + match[1])


def holds_rows(cell: str, delimiter: str, num_cells: int) -> bool:
    """Return whether a cell holds the rows between two stray quotation marks: at least three lines
    with as many delimiters as rows have. A delimiter beside a space is a punctuation mark of the
    text, and does not count."""
    pattern = re.compile(rf"(?<=\S)[{delimiter}](?=\S)")
    counts = [len(pattern.findall(line)) for line in cell.split("\n")]
    expected = num_cells - 1
    return set(counts[1:-1]) == {expected} and counts[0] + counts[-1] == expected


def _find_delimiters(header: str) -> Sequence[str]:
    """Return the most frequent delimiters of a header, several if they are equally frequent. A
    header without delimiters names a single column, so any delimiter fits."""
    most = max(map(header.count, _DELIMITERS))
    if most == 0:
        return ","
    return [mark for mark in _DELIMITERS if header.count(mark) == most]


def _spaces(delimiter: str) -> str:
    """Return the pattern of the spaces before a cell that do not belong to it: in CSV, those before
    quotation marks."""
    # Possessive: otherwise a quoted cell might be read again as several cells without quotes.
    return "" if delimiter == "\t" else '(?: +(?="))?+'


def _cell(delimiter: str) -> str:
    """Return the pattern of a cell, with or without quotation marks."""
    return rf'(?:"(?:[^"]|"")*"|(?!")[^{delimiter}\r\n]*)'


def _row(delimiter: str, number: int, num_cells: int) -> str:
    """Return the pattern of a row with `num_cells` cells and the line end. The group of the pattern
    is cell `number`, from 1."""
    spaces = _spaces(delimiter)
    cell = _cell(delimiter)
    before = f"(?:{spaces}{cell}[{delimiter}]){{{number - 1}}}"
    after = f"(?:[{delimiter}]{spaces}{cell}){{{num_cells - number}}}"
    return f"{before}{spaces}({cell}){after}[\r\n]+"


def _decode(cell: str) -> str:
    """Return the text of a cell."""
    return cell[1:-1].replace('""', '"') if cell.startswith('"') else cell


def encode(translation: str, original: str) -> str:
    """Return a translation as a cell, in quotation marks if the original has quotation marks, or if
    the translation has the table's delimiter, a line break or a quotation mark.

    Args:
        translation: the translation.
        original: the delimiter or `_UNQUOTED`, and then the cell.

    Raises:
        ValueError: the translation needs quotation marks in a table without quotation marks.
    """
    delimiter = original[0]
    cell = original[1:]
    if translation.split() == _decode(cell).split():
        return cell
    if delimiter == _UNQUOTED:
        if re.search(r"[\t\r\n]", translation):
            raise ValueError("a tab or line break")
        return translation
    if cell.startswith('"') or re.search(rf'["\r\n{delimiter}]', translation):
        return '"' + translation.replace('"', '""') + '"'
    return translation
