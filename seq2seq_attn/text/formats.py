"""Tables of parallel text, whose format the content tells, as rows.

A row maps keys (JSON, TMX) or column numbers, "1" for the first (TSV, CSV), to text. An empty row is a blank line.
"""

import csv
import io
import json
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple
from xml.etree import ElementTree

from seq2seq_attn.errors import UserError
from seq2seq_attn.text.corpus import iter_blocks, iter_lines
from seq2seq_attn.text.normalize import one_line

Row = Mapping[str, str]
Rows = Iterator[tuple[int, Row]]
"""rows with their line numbers, from 1"""
_HEAD = 1 << 16
"""characters that tell the format"""
_MAX_VALUE = 1 << 24
"""characters of a JSON value or a TMX unit"""
_LANG = "{http://www.w3.org/XML/1998/namespace}lang"
_TMX_CODES = {"bpt", "ept", "ph", "it", "ut"}
"""elements whose own text is markup"""


def numbered(cells: Iterable[str]) -> Row:
    return dict(zip(map(str, count(1)), cells))  # noqa: B905


def _tsv_rows(path: Path) -> Rows:
    for number, line in enumerate(iter_lines(path), 1):
        yield number, numbered(line.split("\t")) if line.strip() else {}


def _csv_rows(path: Path) -> Rows:
    reader = csv.reader((f"{line}\n" for line in iter_lines(path)), **_dialect(_head(path)) or {})
    try:
        for row in reader:
            yield reader.line_num, numbered(map(one_line, row))
    except csv.Error as error:
        raise UserError(f"{path}, line {reader.line_num}: not CSV ({error}); check its quotation marks") from None


def _dialect(head: str) -> dict[str, Any] | None:
    """The options of `csv.reader` with which all rows have the same number of columns, at least two. What looks like a
    TSV is read as CSV only if quotation marks are doubled in it, as in `"a ""b"" c"`, or around each cell."""
    escape = "\\" if '\\"' in head else None
    is_tsv = all("\t" in line for line in head.split("\n") if line.strip())
    is_quoted = '""' in head or re.fullmatch(r'("[^"\t]*"[\t\r\n]+)+', f"{head[: head.rfind(chr(10))]}\n")
    for delimiter in ";|,\t" if not is_tsv else "\t" if is_quoted else "":
        options: dict[str, Any] = {"delimiter": delimiter, "escapechar": escape, "strict": True}
        rows: list[list[str]] = []
        reader = csv.reader(io.StringIO(head, newline=""), **options)
        with suppress(csv.Error):
            rows.extend(reader)
        sizes = {len(row) for row in rows[: -1 if len(head) == _HEAD else None] if row}
        if reader.line_num >= head.count("\n") and len(sizes) == 1 and sizes != {1}:
            return options
    return None


def _json_rows(path: Path) -> Rows:
    """Values one after another, such as an object per line, or the items of a list."""
    blocks = iter_blocks(path)
    text = next(blocks, "")
    is_list = re.match(r"\s*\[\s*(?=[\[{])", text)
    number, start, position = 1, 0, is_list.end() if is_list else 0
    while True:
        while position < len(text) and text[position] in " \t\r\n,":
            position += 1
        number, start = number + text.count("\n", start, position), position
        try:
            value, position = json.JSONDecoder().raw_decode(text, position)
        except (ValueError, RecursionError):
            rest, block = text[position:], next(blocks, None)
            if block is None and rest.strip() in ("", "]" if is_list else ""):
                return
            if block is None or len(rest) > _MAX_VALUE:
                raise UserError(f"{path}, line {number}: not a JSON object; expected one per line, or a list") from None
            text, start, position = rest + block, 0, 0
        else:
            yield number, _json_row(path, number, value)


def _json_row(path: Path, number: int, value: Any) -> Row:
    """The text in a list, or in an object and the objects in it, such as `translation`; a null is blank."""
    value = numbered(value) if isinstance(value, list) else value
    if not isinstance(value, dict):
        raise UserError(f'{path}, line {number}: expected an object such as {{"en": "...", "fr": "..."}}')
    for inner in [*value.values()]:
        value |= inner if isinstance(inner, dict) else {}
    return {key: one_line(text or "") for key, text in value.items() if text is None or isinstance(text, str)}


def _tmx_rows(path: Path) -> Rows:
    """The translation units. A text has two keys, such as `pt` and `pt-br`; a language that a unit lacks is blank."""
    text, number = "", 1
    for block in iter_blocks(path):
        *units, text = (text + block).split("</tu>")
        for unit in units:
            try:
                row = _tmx_row(ElementTree.fromstring(re.sub(r"\A.*?(?=<tu\b)", "", f"{unit}</tu>", flags=re.S)))
            except ElementTree.ParseError as error:
                raise UserError(f"{path}, unit from line {number}: damaged TMX ({error})") from None
            yield number, row
            number += unit.count("\n")
        if len(text) > _MAX_VALUE:
            raise UserError(f"{path}, unit from line {number}: longer than 16 MiB; give a sentence per unit")
    if "</tmx>" not in text.lower():
        raise UserError(f"{path}: damaged TMX, cut after line {number}; copy it again")


def _tmx_row(unit: ElementTree.Element) -> Row:
    row: dict[str, str] = defaultdict(str)
    for variant in unit.iter("tuv"):
        code = (variant.get(_LANG) or variant.get("lang") or "").lower()
        for element in variant.iter():
            element.text = None if element.tag in _TMX_CODES else element.text
        row[code] = one_line("".join(text for segment in variant.iter("seg") for text in segment.itertext()))
        row.setdefault(re.split("[-_]", code)[0], row[code])
    return row


class Format(NamedTuple):
    """A kind of table, told by its first characters. Without `rows`, it is not read, and the name says what to do."""

    name: str
    matches: Callable[[str], object]
    rows: Callable[[Path], Rows] | None


FORMATS = (
    Format("TMX", re.compile(r"(?i)\A\s*<([^\0]*<)?tmx\b").match, _tmx_rows),
    Format("XML; convert it to TMX or TSV", re.compile(r"(?i)\s*<(\?xml|!doctype|html|\w*set\b|doc\b)").match, None),
    Format("subtitles; remove their time stamps", re.compile(r"(?m)^\s*[\d:]+[,.]\d+ *--> *[\d:]+").search, None),
    Format("JSON", re.compile(r'\s*(\{\s*"|\[\s*[\[{"])').match, _json_rows),
    Format("CSV", _dialect, _csv_rows),
    Format("TSV", lambda head: "\t" in head or not head.strip(), _tsv_rows),
)


def _head(path: Path) -> str:
    return next(iter_blocks(path), "")[:_HEAD]


def format_of(path: Path) -> Format | None:
    """The format of a table; None for plain text. Raises UserError for a format that is not read."""
    head = _head(path)
    format = next((format for format in FORMATS if format.matches(head)), None)
    if format is not None and format.rows is None:
        raise UserError(f"{path}: {format.name}")
    return format
