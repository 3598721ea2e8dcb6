"""Read tables of parallel text as rows: TSV, CSV, JSON, TMX, XLIFF and PO.

A row maps keys to text. The keys are column numbers from "1" in TSV and CSV, the keys of an object
in JSON, languages in TMX and XLIFF, and `msgid` and `msgstr` in PO.
"""

import csv
import html
import json
import logging
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice, product
from pathlib import Path
from typing import Any, NamedTuple
from xml.etree import ElementTree

from seq2seq_attn.config import plural
from seq2seq_attn.errors import UserError
from seq2seq_attn.text.documents.catalogues import find_pairs
from seq2seq_attn.text.documents.columns import holds_rows
from seq2seq_attn.text.documents.kinds import CATALOGUE, JSON, SUBTITLES, XML, kind_by_content
from seq2seq_attn.text.documents.units import LANGUAGE
from seq2seq_attn.text.languages import short_code
from seq2seq_attn.text.lines import MAX_LINE_BYTES, iter_blocks, iter_lines, plain_name
from seq2seq_attn.text.normalize import one_line

Row = Mapping[str, str]
Rows = Iterator[tuple[int, Row | None]]
"""pairs of a line number and a row. The row is None if it is damaged, and empty if the line is
blank."""
_HEAD_SIZE = 1 << 16
"""number of characters from which the form of a file is recognized"""
_LANG = "{http://www.w3.org/XML/1998/namespace}lang"
_TMX_CODES = {"bpt", "ept", "ph", "it", "ut"}
"""TMX elements that contain markup instead of text"""
_XLIFF_UNIT = re.compile(
    r"""(?xs)
    <(?:\w+:)?(?:trans-unit|segment)\b(?![^>]*\s(?:translate=.no|state=.initial))[^>]*>\s*
    <(?:\w+:)?source\b[^>]*>(.*?)</(?:\w+:)?source>\s*
    (?:<(?:\w+:)?seg-source\b.*?</(?:\w+:)?seg-source>\s*)?
    (?:<(?:\w+:)?target\b(?![^>]*\sstate=.n)[^>]*(?<!/)>(.*?)</(?:\w+:)?target>)?
    """
)
"""matches a unit of XLIFF. Its groups are source and target; the second is None without a
translation, or where its state is new or begins with `needs`."""
_NAMED_SEPARATOR = re.compile(r"sep=(.)\r?(?:\n|\Z)")
"""the first line of a CSV file that names its separator"""
_ENTITY = re.compile(r"&(?!amp;|lt;|gt;|quot;|apos;)[a-zA-Z]\w*;")
"""an HTML entity that XML does not define"""

log = logging.getLogger(__name__)

_LOGGED: set[Path] = set()
"""tables whose first cell with line breaks and separators has been logged"""


class Form(NamedTuple):
    """A file format of tables."""

    name: str
    suffixes: tuple[str, ...]
    rows: Callable[[Path], Rows]
    """yields the rows of a file; raises ValueError if the rest of the file cannot be read"""


def find_form(path: Path) -> Form | None:
    """Return the form of a table by the suffix of its name, or else by its first characters. Return
    None if the file is not a table.

    Raises:
        UserError: the file is a document and not lines of text.
    """
    named = form_by_suffix(path)
    if named is not None:
        return named
    head = read_head(path)
    if _is_tmx(head):
        return _TMX
    check_no_document(path)
    if JSON.pattern.match(head):
        return _JSON
    return _DELIMITED if _is_delimited(head) else None


def form_by_suffix(path: Path) -> Form | None:
    """Return the form to which the suffix of a file belongs, or None."""
    name = plain_name(path).lower()
    return next((form for form in _FORMS if name.endswith(form.suffixes)), None)


def check_no_document(path: Path) -> None:
    """Raise UserError if a file is a document and not lines of text."""
    kind = kind_by_content(read_head(path))
    if kind in _ADVICE:
        raise UserError(f"{path}: {_ADVICE[kind]}")


def read_head(path: Path) -> str:
    """Return the first characters of a file, in whole lines if possible."""
    head = next(iter_blocks(path), "")[:_HEAD_SIZE]
    if len(head) < _HEAD_SIZE:
        return head
    return head[: head.rfind("\n") + 1] or head


@dataclass
class Damage:
    """Count the rows of a table that are left out because they are damaged."""

    num_rows: int = 0
    """number of all rows"""
    lines: list[int] = field(default_factory=list)
    """line numbers of the damaged rows"""

    def check(self, name: str) -> None:
        """Raise UserError if too many rows of the table `name` are damaged."""
        if not may_leave_out(len(self.lines), self.num_rows):
            raise UserError(
                f"{name}, line {self.lines[0]}: damaged, as are {len(self.lines):,} of "
                f"{self.num_rows:,} rows: other columns or keys than the rest, a quotation without "
                "its end, or not readable; correct them"
            )

    def describe(self) -> str:
        """Return a message with the number of damaged rows and the line of the first damaged
        row."""
        rows = plural(len(self.lines), "damaged row")
        return f"{rows} left out, the first in line {self.lines[0]:,}"


def may_leave_out(num_damaged: int, num_rows: int) -> bool:
    """Return whether a table is read without its damaged rows. At most 1% of the rows may be
    damaged. In a table of at least twenty rows, one row may be damaged."""
    return num_damaged <= num_rows / 100 or (num_damaged == 1 and num_rows >= 20)


class _Dialect(NamedTuple):
    """The way in which the cells of a row are separated."""

    num_columns: int
    """number of columns of most rows"""
    options: Mapping[str, Any]
    """options of `csv.reader`. If empty, tabs separate cells, and quotation marks are text."""
    num_odd: int
    """number of rows that do not have `num_columns` columns"""
    num_rows: int


def _find_dialect(head: str) -> _Dialect | None:
    """Return the dialect in which most rows have the same number of columns, at least two. Return
    None if no dialect gives two columns.

    Text with tabs is read as CSV only if quotation marks are doubled, as in `"a ""b"" c"`, or
    enclose every cell.
    """
    lines = head.split("\n")
    named = _NAMED_SEPARATOR.match(head)
    if named:
        return _try_csv(lines[1:], named[1], None)
    tabs = [line.count("\t") for line in lines if line.strip()]
    has_tabs = may_leave_out(tabs.count(0), len(tabs))
    is_quoted = '""' in head or re.fullmatch(r'("[^"\t]*"[\t\r\n]+)+', f"{head}\n")
    if has_tabs and not is_quoted:
        return _dialect({}, [number + 1 for number in tabs])
    separators = "\t" if has_tabs else ";|,\t"
    escapes = ["\\", None] if re.search(r'\\"(?!")', head) else [None, "\\"]
    tried = [_try_csv(lines, *choice) for choice in product(separators, escapes)]
    fitting = [dialect for dialect in tried if dialect.num_columns > 1]
    return min(fitting, key=lambda dialect: dialect.num_odd, default=None)


def _is_delimited(head: str) -> bool:
    """Return whether all lines of a text have the same separators."""
    dialect = _find_dialect(head)
    if dialect is None:
        return False
    return not dialect.options or may_leave_out(dialect.num_odd, dialect.num_rows)


def _try_csv(lines: Sequence[str], separator: str, escape: str | None) -> _Dialect:
    """Return the dialect of lines that are read as CSV with a separator and an escape character."""
    options = {"delimiter": separator, "escapechar": escape}
    rows = [cells for _, cells in _csv_cells(lines, options)]
    if sum(map(len, lines)) > _HEAD_SIZE // 2:
        rows.pop()  # the head may end inside a row
    # Blank lines do not count.
    sizes = [len(cells) for cells in rows if cells]
    return _dialect(options, sizes, num_unreadable=rows.count(None))


def _dialect(options: Mapping[str, Any], sizes: Sequence[int], num_unreadable: int = 0) -> _Dialect:
    """Return the dialect of rows with these numbers of cells (`sizes`), and of rows that cannot be
    read."""
    most_common = Counter(sizes).most_common(1) or [(0, 0)]
    num_columns, num_regular = most_common[0]
    num_rows = len(sizes) + num_unreadable
    return _Dialect(num_columns, options, num_rows - num_regular, num_rows)


def _csv_cells(
    lines: Iterable[str], options: Mapping[str, Any]
) -> Iterator[tuple[int, list[str] | None]]:
    """Yield the line number and the cells of each row. Each line of a row that cannot be read is
    yielded with None, and so is a row in which a cell holds other rows."""
    ended = (f"{line}\n" for line in lines)
    reader = csv.reader(ended, skipinitialspace=True, strict=True, **options)
    while True:
        start = reader.line_num + 1
        try:
            cells = next(reader)
        except StopIteration:
            return
        except csv.Error:
            for number in range(start, reader.line_num + 1):
                yield number, None
            continue
        is_damaged = False
        for cell in cells:
            if "\n" in cell and holds_rows(cell, options["delimiter"], len(cells)):
                is_damaged = True
        yield start, None if is_damaged else cells


def _delimited_rows(path: Path) -> Rows:
    """Yield the rows of a TSV or CSV file."""
    head = read_head(path)
    dialect = _find_dialect(head)
    if dialect is None:
        raise ValueError("not the same separators in each line, or a quotation without its end")
    keys = [str(number) for number in range(1, dialect.num_columns + 1)]
    num_skipped = 1 if _NAMED_SEPARATOR.match(head) else 0
    lines = islice(iter_lines(path), num_skipped, None)
    cells: Iterable[tuple[int, list[str] | None]]
    if dialect.options:
        cells = _csv_cells(lines, dialect.options)
    else:
        cells = enumerate((line.split("\t") if line.strip() else [] for line in lines), 1)
    delimiter = dialect.options.get("delimiter", "\t")
    for index, row in cells:
        number = index + num_skipped
        if row is None or (row and len(row) != len(keys)):
            yield number, None
            continue
        is_doubtful = any("\n" in cell and delimiter in cell for cell in row)
        if is_doubtful and path not in _LOGGED:
            _LOGGED.add(path)  # a table is read several times
            message = "%s, line %d: a cell with line breaks and separators; check its quotes"
            log.info(message, path, number)
        texts = map(one_line, row) if dialect.options else row
        # The row of a blank line has no texts.
        yield number, dict(zip(keys, texts, strict=False))


def _json_rows(path: Path) -> Rows:
    """Yield a row for each JSON value. The values are the items of a list, or stand one after the
    other, for example an object per line."""
    blocks = iter_blocks(path)
    text = next(blocks, "")
    opening = re.match(r"\s*\[\s*(?=[\[{])", text)
    position = opening.end() if opening else 0
    line = 1 + text.count("\n", 0, position)
    while True:
        start = position
        while position < len(text) and text[position] in " \t\r\n,":
            position += 1
        line += text.count("\n", start, position)
        start = position
        try:
            value, position = json.JSONDecoder().raw_decode(text, position)
        except (ValueError, RecursionError) as error:
            end = text.find("\n", getattr(error, "pos", len(text)))
            if end >= 0 and not opening:
                # The line was read to its end, so it is damaged.
                line += text.count("\n", position, end)
                yield line, None
                position = end
                continue
            # The value may continue in the next block.
            text = text[position:]
            position = 0
            block = next(blocks, None)
            if block is None and text.strip() == ("]" if opening else ""):
                return
            if block is None or len(text) > MAX_LINE_BYTES:
                raise ValueError(
                    f"line {line}: expected an object per line, or a list of objects"
                ) from None
            text += block
        else:
            yield line, _json_row(value)
            line += text.count("\n", start, position)


def _json_row(value: Any) -> Row | None:
    """Return the row of a JSON value: the texts in a list by their numbers, or the texts in an
    object and in objects inside, such as `translation`, by their fields. A field of several objects
    inside is left out. Null is a blank text. Return None for a value without texts."""
    if isinstance(value, list):
        value = {str(number): item for number, item in enumerate(value, 1)}
    if not isinstance(value, dict):
        return None
    items = dict(value)
    repeated: set[str] = set()
    for inner in value.values():
        if isinstance(inner, dict):
            repeated |= inner.keys() & items.keys()
            items |= inner
    row = {}
    for key, text in (items | value).items():
        if (key in value or key not in repeated) and (text is None or isinstance(text, str)):
            row[key] = one_line(text or "")
    return row or None


def _tmx_rows(path: Path) -> Rows:
    """Yield a row for each translation unit. Each text stands under two keys: its language with the
    region and without the region, such as `pt-br` and `pt`. The text of a missing language is
    blank."""
    text = ""
    line = 1
    for block in iter_blocks(path):
        *units, text = (text + block).split("</tu>")
        for unit in units:
            start = max(unit.rfind("<tu "), unit.rfind("<tu>"), 0)
            yield line + unit.count("\n", 0, start), _tmx_row(f"{unit[start:]}</tu>")
            line += unit.count("\n")
        if len(text) > MAX_LINE_BYTES:
            raise ValueError(f"line {line}: longer than 16 MiB; expected a sentence per unit")
    if "</tmx>" not in text.lower():
        raise ValueError(f"line {line}: its end is missing; copy the file again")


def _tmx_row(unit: str) -> Row | None:
    """Return the text of each language in a translation unit, or None if the unit is not valid
    XML."""
    try:
        element = ElementTree.fromstring(_ENTITY.sub(lambda match: html.unescape(match[0]), unit))
    except ElementTree.ParseError:
        return None
    row: dict[str, str] = defaultdict(str)
    for markup in element.iter():
        if markup.tag in _TMX_CODES:
            markup.text = None
    for variant in element.iter("tuv"):
        code = (variant.get(_LANG) or variant.get("lang") or "").lower()
        language = short_code(code)
        _, dash, region = code.partition("-")
        segments = ["".join(segment.itertext()) for segment in variant.iter("seg")]
        text = one_line("".join(segments))
        row[f"{language}{dash}{region}"] = text
        row.setdefault(language, text)
    return row


def _xliff_rows(path: Path) -> Rows:
    """Yield a row for each unit of XLIFF, with the keys of `_tmx_rows`. The row of an untranslated
    unit is empty."""
    document = "".join(iter_blocks(path))
    codes = sorted(set(LANGUAGE.findall(document)))
    if "xliff>" not in document[-99:] or [side for side, _ in codes] != ["s", "t"]:
        raise ValueError("expected </xliff>, one language of sources, and one of targets")
    number = 1
    position = 0
    for unit in _XLIFF_UNIT.finditer(document):
        number += document.count("\n", position, unit.start())
        position = unit.start()
        variants = ""
        for (_, code), segment in zip(codes, unit.groups(), strict=True):
            variants += f'<tuv lang="{code}"><seg>{segment}</seg></tuv>'
        yield number, {} if unit[2] is None else _tmx_row(f"<tu>{variants}</tu>")


def _po_rows(path: Path) -> Rows:
    """Yield a row for each entry of a catalogue. The number of the entry takes the place of a line
    number."""
    for number, row in enumerate(find_pairs("".join(iter_blocks(path))), 1):
        yield number, {key: one_line(text) for key, text in row.items()}


_is_tmx = re.compile(r"(?i)\A\s*<([^\0]*<)?tmx\b").match
_ADVICE = {
    XML: "XML; convert it to TMX, XLIFF or TSV, and name it so",
    SUBTITLES: "subtitles; remove their time stamps",
    CATALOGUE: "a PO catalogue; name it NAME.po",
}
"""advice for the user, by the kinds of documents that cannot be read"""
_TMX = Form("TMX", (".tmx",), _tmx_rows)
_XLIFF = Form("XLIFF", (".xlf", ".xliff"), _xliff_rows)
_PO = Form("PO", (".po",), _po_rows)
_JSON = Form("JSON", (".json", ".jsonl", ".ndjson"), _json_rows)
_DELIMITED = Form("TSV or CSV", (".tsv", ".csv", ".tab"), _delimited_rows)
_FORMS = (_TMX, _XLIFF, _PO, _JSON, _DELIMITED)
