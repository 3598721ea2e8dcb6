"""Read parallel text as pairs: from a file of lines for each language, or from a table.

The first characters of a file tell its format (`FORMATS`). Names of files, columns or keys tell the
languages, or else the words of the first rows.
"""

import csv
import io
import json
import logging
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice, product
from pathlib import Path
from typing import Any, NamedTuple
from xml.etree import ElementTree

from seq2seq_attn.config.layout import NONE, SourceLayout
from seq2seq_attn.errors import UsageError, UserError
from seq2seq_attn.text.columns import Row, columns_by_name, columns_by_words, is_text
from seq2seq_attn.text.languages import CODE, complete_languages, find_codes, short_code
from seq2seq_attn.text.lines import MAX_LINE_BYTES, aligned_lines, iter_blocks, iter_lines
from seq2seq_attn.text.normalize import one_line

log = logging.getLogger(__name__)

Spec = str | Sequence[str]
"""a prefix, a table, or [source file, target file]"""
_OTHER_LANGUAGES = "see --source-language and --target-language"
KINDS = "a prefix (PREFIX.en, PREFIX.fr), two files, or a table (TSV, CSV, JSON, TMX)"
_HEAD_SIZE, _SAMPLE_SIZE = 1 << 16, 1_000
"""characters that tell the format, and rows that tell the columns"""
_SUFFIXES = (".gz", ".xz", ".bz2", ".zst")
_LANG = "{http://www.w3.org/XML/1998/namespace}lang"
_TMX_CODES = {"bpt", "ept", "ph", "it", "ut"}
"""elements whose own text is markup"""


def _numbered(rows: Iterable[Sequence[str]]) -> Iterator[Row]:
    size = 0
    for cells in rows:
        size = size or len(cells)
        if cells and len(cells) != size:
            raise ValueError(
                f"{len(cells)} columns, but {size} before; expected the same separators in each "
                "line"
            )
        yield {str(number): cell for number, cell in enumerate(cells, 1)}


def _tsv_rows(path: Path) -> Iterator[Row]:
    return _numbered(line.split("\t") if line.strip() else [] for line in iter_lines(path))


def _csv_rows(path: Path) -> Iterator[Row]:
    rows = csv.reader((f"{line}\n" for line in iter_lines(path)), **_dialect(_head(path)) or {})
    return _numbered([*map(one_line, row)] for row in rows)


def _dialect(head: str) -> dict[str, Any] | None:
    """The options of `csv.reader` with which all rows have the same number of columns, at least
    two. What looks like a TSV is read as CSV only if quotation marks are doubled in it, as in `"a
    ""b"" c"`, or around each cell."""
    escapes = ["\\", None] if re.search(r'\\"(?!")', head) else [None, "\\"]
    is_tsv = all("\t" in line for line in head.split("\n") if line.strip())
    is_quoted = '""' in head or re.fullmatch(r'("[^"\t]*"[\t\r\n]+)+', f"{head}\n")
    for delimiter, escape in product(";|,\t" if not is_tsv else "\t" if is_quoted else "", escapes):
        options: dict[str, Any] = {"delimiter": delimiter, "escapechar": escape, "strict": True}
        rows: list[list[str]] = []
        reader = csv.reader(io.StringIO(head, newline=""), **options)
        with suppress(csv.Error):
            rows.extend(reader)
        sizes = {len(row) for row in rows[: -1 if len(head) == _HEAD_SIZE else None] if row}
        if reader.line_num >= head.count("\n") and len(sizes) == 1 and sizes != {1}:
            return options
    return None


def _json_rows(path: Path) -> Iterator[Row]:
    """Values one after another, such as an object per line, or the items of a list."""
    blocks = iter_blocks(path)
    text = next(blocks, "")
    is_list = re.match(r"\s*\[\s*(?=[\[{])", text)
    position = is_list.end() if is_list else 0
    while True:
        while position < len(text) and text[position] in " \t\r\n,":
            position += 1
        try:
            value, position = json.JSONDecoder().raw_decode(text, position)
        except (ValueError, RecursionError):
            text, position, block = text[position:], 0, next(blocks, None)
            if block is None and text.strip() == ("]" if is_list else ""):
                return
            if block is None or len(text) > MAX_LINE_BYTES:
                raise ValueError("expected an object per line, or a list of objects") from None
            text += block
        else:
            yield _json_row(value)


def _json_row(value: Any) -> Row:
    """The text in a list, or in an object and the objects in it, such as `translation`; a null is
    blank."""
    value = (
        {str(number): item for number, item in enumerate(value, 1)}
        if isinstance(value, list)
        else value
    )
    items = value if isinstance(value, dict) else {}
    for inner in [*items.values()]:
        items |= inner if isinstance(inner, dict) else {}
    row = {
        key: one_line(text or "")
        for key, text in items.items()
        if text is None or isinstance(text, str)
    }
    if not row:
        raise ValueError('expected an object such as {"en": "...", "fr": "..."}')
    return row


def _tmx_rows(path: Path) -> Iterator[Row]:
    """The translation units. A text has two keys, such as `pt` and `pt-br`; a language that a unit
    lacks is blank."""
    text = ""
    for block in iter_blocks(path):
        *units, text = (text + block).split("</tu>")
        for unit in units:
            row: dict[str, str] = defaultdict(str)
            element = ElementTree.fromstring(
                re.sub(r"\A.*?(?=<tu\b)", "", f"{unit}</tu>", flags=re.S)
            )
            for markup in filter(lambda inner: inner.tag in _TMX_CODES, element.iter()):
                markup.text = None
            for variant in element.iter("tuv"):
                code = (variant.get(_LANG) or variant.get("lang") or "").lower()
                row[code] = one_line(
                    "".join(part for segment in variant.iter("seg") for part in segment.itertext())
                )
                row.setdefault(re.split("[-_]", code)[0], row[code])
            yield row
        if len(text) > MAX_LINE_BYTES:
            raise ValueError("longer than 16 MiB; expected a sentence per unit")
    if "</tmx>" not in text.lower():
        raise ValueError("its end is missing; copy the file again")


class Format(NamedTuple):
    """A kind of table, told by its first characters. A format without `rows` is not read, and its
    name says why."""

    name: str
    matches: Callable[[str], object]
    rows: Callable[[Path], Iterator[Row]] | None
    """raises ValueError, `csv.Error` or `ParseError`: the file is damaged"""


FORMATS = (
    Format("TMX", re.compile(r"(?i)\A\s*<([^\0]*<)?tmx\b").match, _tmx_rows),
    Format(
        "XML; convert it to TMX or TSV",
        re.compile(r"(?i)\s*<(\?xml|!doctype|html|\w*set\b|doc\b)").match,
        None,
    ),
    Format(
        "subtitles; remove their time stamps",
        re.compile(r"(?m)^\s*[\d:]+[,.]\d+ *--> *[\d:]+").search,
        None,
    ),
    Format("JSON", re.compile(r'\s*(\{\s*"|\[\s*[\[{"])').match, _json_rows),
    Format("CSV", _dialect, _csv_rows),
    Format("TSV", lambda head: "\t" in head or not head.strip(), _tsv_rows),
)


def _head(path: Path) -> str:
    head = next(iter_blocks(path), "")[:_HEAD_SIZE]
    return head if len(head) < _HEAD_SIZE else head[: head.rfind("\n") + 1] or head  # whole lines


def _format_of(path: Path) -> Format | None:
    """The format of a table; None for plain text."""
    head = _head(path)
    return next((format for format in FORMATS if format.matches(head)), None)


def _iter_rows(path: Path, format: Format) -> Iterator[tuple[int, Row]]:
    """The rows of a table with their numbers, from 1. Raises UserError: it is damaged, or its
    format is not read."""
    if format.rows is None:
        raise UserError(f"{path}: {format.name}")
    number = 0
    try:
        for number, row in enumerate(format.rows(path), 1):
            yield number, row
    except (ValueError, csv.Error, ElementTree.ParseError) as error:
        raise UserError(f"{path}, row {number + 1}: damaged {format.name} ({error})") from None


@dataclass(frozen=True)
class Text:
    """Parallel text: a file for each language, or a table; or one file, if the source's language is
    `none`."""

    paths: tuple[Path, ...]
    languages: tuple[str, ...]
    """those of the sources, then that of the target"""
    format: Format | None = None
    """of a table"""
    columns: tuple[str, ...] = ()
    """the key of each language in the rows of a table"""
    has_header: bool = False

    @property
    def layout(self) -> SourceLayout:
        """The columns of a source line."""
        return SourceLayout(self.languages[:-1])

    def __str__(self) -> str:
        return " and ".join(map(str, self.paths))

    def pairs(self) -> Iterator[tuple[str, str]]:
        """Source (several are joined by tabs; blank without one) and target of each pair. Raises
        UserError: a file cannot be read, the numbers of lines differ, or a row is not a pair."""
        for *sources, target in (
            self._cells(self.format) if self.format else aligned_lines(self.paths)
        ):
            yield (
                sources[0] if len(sources) == 1 else "\t".join(map(one_line, sources)),
                target,
            )

    def _cells(self, format: Format) -> Iterator[Sequence[str]]:
        rows = _iter_rows(self.paths[0], format)
        if self.has_header:
            next(row for _, row in rows if row)
        for number, row in rows:
            try:
                yield [row[column] for column in self.columns] if row else [""] * len(self.columns)
            except KeyError as error:
                raise UserError(
                    f"{self}, row {number}: no text for {error}; {_OTHER_LANGUAGES}"
                ) from None


def find_text(spec: Spec, *languages: str | None) -> Text:
    """Locate the text of a split, in the languages of its sources, usually one, and of its target.
    A language that is None is read from the names of files, columns or keys.

    Raises:
        UsageError: the languages are not clear, names or columns are those of others, or the two
            sides are the same.
        UserError: a file cannot be read, or its format is not read.
    """
    names = [spec] if isinstance(spec, str) else [*spec]
    name, path = ", ".join(names), Path(names[0])
    wanted = [language for language in languages if language != NONE]
    format = _format_of(path) if len(names) == 1 < len(wanted) and path.is_file() else None
    # prose in a file that is named after a language may look like CSV
    if format and not (format.name == "CSV" and CODE.fullmatch(_split(path)[1])):
        return _find_columns(path, format, wanted)
    if len(names) == len(wanted) and (len(names) > 1 or path.is_file()):
        paths = [*map(Path, names)]
        known = complete_languages(name, [_split(path)[1] for path in paths], wanted)
    elif len(names) == 1 and (files := _files_by_suffix(path)):
        known = complete_languages(name, sorted(files), wanted, is_ordered=False)
        if missing := [language for language in known if language not in files]:
            raise UserError(
                f"{name}.{missing[0]}: no such file; there is {', '.join(files)}; "
                f"{_OTHER_LANGUAGES}"
            )
        paths = [files[language] for language in known]
    else:
        raise (
            _no_text(name)
            if len(names) == 1
            else UsageError(f"{name}: expected {len(wanted)} files; see {KINDS}")
        )
    if len({path.resolve() for path in paths}) < len(paths):
        raise UsageError(f"{name}: the same file twice, {paths[-1]}; name a file for each side")
    codes = [_split(path)[1] for path in paths]
    if all(map(CODE.fullmatch, (*codes, *known))) and [*map(short_code, codes)] != [
        *map(short_code, known)
    ]:
        raise UsageError(
            f"{name}: names of {', '.join(codes)}; expected {', '.join(known)}, or "
            f"{_OTHER_LANGUAGES}"
        )
    for path in paths:
        if not path.is_file():
            raise _no_text(str(path))
        if (format := _format_of(path)) and format.name not in ("CSV", "TSV")[
            : len(paths)
        ]:  # prose may look like them
            raise UsageError(
                f"{path}: expected plain text of one side, or a table alone; not {format.name}"
            )
    return Text(tuple(paths), (NONE,) * (len(languages) - len(wanted)) + known)


def _files_by_suffix(prefix: Path) -> dict[str, Path]:
    """The files `PREFIX.SUFFIX`; plain ones before compressed ones."""
    folder = prefix.parent
    paths = (
        [path for path in sorted(folder.iterdir()) if _split(path)[0] == prefix.name]
        if folder.is_dir()
        else []
    )
    return {_split(path)[1]: path for path in reversed(paths) if path.is_file()}


def _split(path: Path) -> tuple[str, str]:
    """The name of a file before its last suffix, and that suffix; the suffix of a compression is
    ignored."""
    stem, _, suffix = (path.stem if path.suffix in _SUFFIXES else path.name).rpartition(".")
    return stem, suffix


def _no_text(name: str) -> UserError:
    """The error for a name that is not that of a text."""
    one_side = "one side only, or not the same separators in each line"
    return UserError(
        f"{name}: {one_side if Path(name).is_file() else 'no such text file'}; expected {KINDS}"
    )


def _find_columns(path: Path, format: Format, languages: Sequence[str | None]) -> Text:
    """The text of a table, in the columns that names, or else their cells, say to be in these
    languages."""
    rows = [row for _, row in islice(_iter_rows(path, format), _SAMPLE_SIZE) if row]
    rows = rows or [{str(number): "" for number, _ in enumerate(languages, 1)}]
    is_keyed = "1" not in rows[0]
    names: Row = {key: key for row in rows for key in row} if is_keyed else rows[0]
    known = complete_languages(str(path), [*names.values()], languages)
    texts = [
        key
        for key in names
        if len(names) == len(known) or is_text([row.get(key, "") for row in rows])
    ]
    header = {
        key: name for key, name in names.items() if len(rows) == 1 or rows[-1].get(key) != name
    }
    if columns := columns_by_name(header, texts, known):
        return Text((path,), known, format, columns, has_header=not is_keyed)
    names_others = len(find_codes(header.values())) >= len(known) and all(
        map(CODE.fullmatch, known)
    )
    if is_keyed or names_others or len(texts) < len(known):
        shown = ", ".join(names.values())
        raise UsageError(
            f"{path}, row 1: {shown}; expected the names {', '.join(known)}, or {_OTHER_LANGUAGES}"
        )
    columns = columns_by_words(rows, texts, known)
    if columns != tuple(names):
        where = ", ".join(
            f"{language} in column {column}"
            for language, column in zip(known, columns, strict=True)
        )
        log.info("%s: %s of %d; a first line of names would decide", path, where, len(names))
    if all(re.fullmatch(r"[#\w-]+", name.strip()) for name in names.values()):
        log.warning(
            "%s: its first line (%s) is read as text; remove a header",
            path,
            ", ".join(names.values()),
        )
    return Text((path,), known, format, columns)
