"""Locate parallel text and read it as sentence pairs. The text is a file of lines for each
language, or a table.

The names of files, columns or keys determine languages that the user does not specify.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from seq2seq_attn.config import shorten
from seq2seq_attn.config.layout import NONE, VECTORS, SourceLayout
from seq2seq_attn.errors import UsageError, UserError
from seq2seq_attn.text.columns import choose_columns, columns_by_script, rename_row_numbers
from seq2seq_attn.text.languages import CODE, complete_languages, short_code
from seq2seq_attn.text.lines import aligned_lines, plain_name
from seq2seq_attn.text.normalize import one_line
from seq2seq_attn.text.scripts import is_in_script, usual_script
from seq2seq_attn.text.tables import (
    Damage,
    Form,
    Row,
    check_no_document,
    find_form,
    form_by_suffix,
)

Spec = str | Sequence[str]
"""names a text: a prefix, a table, or the files [source, target]"""
KINDS = "a prefix (PREFIX.en, PREFIX.fr), two files, or a table (TSV, CSV, JSON, TMX, XLIFF, PO)"
_OTHER_LANGUAGES = "see --source-language and --target-language"
_NUM_NAMED_ROWS = 1_000
"""number of first rows whose keys are taken as the names of columns"""
_NUM_PAIRS_TO_CHECK = 100
"""number of first pairs whose scripts are compared with the scripts of their languages"""


@dataclass(frozen=True)
class Text:
    """Parallel text, in a file for each language or in a table. If the language of the source is
    `none`, the text consists of the file of the target alone."""

    paths: tuple[Path, ...]
    languages: tuple[str, ...]
    """the languages of the sources, then of the target"""
    form: Form | None = None
    """the form of the table, or None for files of lines"""
    columns: tuple[str, ...] = ()
    """for a table, the key of each language's text in a row"""
    has_header: bool = False

    @property
    def layout(self) -> SourceLayout:
        """Return the columns of a source line."""
        return SourceLayout(self.languages[:-1])

    def __str__(self) -> str:
        return " and ".join(map(str, self.paths))

    def pairs(self, damage: Damage | None = None) -> Iterator[tuple[str, str]]:
        """Yield the source and the target of each pair. Several sources are joined by tabs, and the
        source of a language model is blank.

        Damaged rows of a table are left out and counted in `damage`.

        Raises:
            UserError: a file cannot be read, the numbers of lines differ, or too many rows are
                damaged.
        """
        rows = aligned_lines(self.paths)
        if self.form is not None:
            rows = self._table_rows(self.form, damage or Damage())
        for *sources, target in rows:
            if len(sources) == 1:
                yield sources[0], target
            else:
                yield "\t".join(map(one_line, sources)), target

    def describe_first_pair(self) -> str | None:
        """Return a message with the first pair if this pair may be a header, which is the case in a
        table whose columns are named by numbers. Otherwise return None."""
        if self.has_header or not "".join(self.columns).isdigit():
            return None
        first = shorten([*next(self.pairs())])
        return (
            f"{self}: first pair: {first}; if it is a header, name the columns by its words, not "
            "by numbers, in --columns"
        )

    def _table_rows(self, form: Form, damage: Damage) -> Iterator[tuple[str, ...]]:
        """Yield the cells of each row in the order of the languages."""
        is_header = self.has_header
        for line, row in read_rows(self.paths[0], form):
            if is_header and row:
                is_header = False
                continue
            damage.num_rows += 1
            if row == {}:
                yield ("",) * len(self.columns)
                continue
            cells = row or {}  # a damaged row has no cells
            try:
                yield tuple([cells[column] for column in self.columns])
            except KeyError:
                damage.lines.append(line)
        damage.check(str(self))


def read_rows(path: Path, form: Form) -> Iterator[tuple[int, Row | None]]:
    """Yield the line number and the row of each row of a table. Raises UserError if the rest of the
    table cannot be read."""
    try:
        yield from form.rows(path)
    except ValueError as error:
        raise UserError(f"{path}: damaged {form.name} ({error})") from None


def find_text(spec: Spec, *languages: str | None, columns: Sequence[str] = ()) -> Text:
    """Locate the text of a data split.

    Args:
        spec: a prefix, a table, or one file for each language.
        languages: the languages of the sources (usually one), then of the target. None means that
            the names of files, columns or keys determine the language.
        columns: for a table, the number or name of each language's column (`data.columns`).

    Raises:
        UsageError: the languages or columns are not clear, or contradict the names of files or
            columns; source and target are the same file; or a text is not in the script of its
            language.
        UserError: a file cannot be read, or its form is not supported.
    """
    names = [spec] if isinstance(spec, str) else [*spec]
    name = ", ".join(names)
    paths = [Path(file) for file in names]
    wanted = [language for language in languages if language != NONE]
    if len(paths) == 1 and len(wanted) > 1 and paths[0].is_file():
        text = _find_table(paths[0], wanted, columns)
    else:
        if len(paths) == 1 and not paths[0].is_file():
            paths, known = _find_prefix(paths[0], wanted)
        elif len(paths) == len(wanted):
            known = complete_languages(name, map(_suffix, paths), wanted)
        else:
            raise UsageError(f"{name}: expected {len(wanted)} files; see {KINDS}")
        _check_files(name, paths, known)
        absent = (NONE,) * (len(languages) - len(wanted))
        text = Text(tuple(paths), (*absent, *known))
    check_scripts(text)
    return text


def _find_prefix(
    prefix: Path, languages: Sequence[str | None]
) -> tuple[list[Path], tuple[str, ...]]:
    """Return the file `PREFIX.CODE` of each language, and the languages."""
    files = _files_by_suffix(prefix)
    if not files:
        raise _no_text(prefix)
    known = complete_languages(str(prefix), sorted(files), languages, is_ordered=False)
    for language in known:
        if language not in files:
            raise UserError(
                f"{prefix}.{language}: no such file; there is {', '.join(files)}; "
                f"{_OTHER_LANGUAGES}"
            )
    return [files[language] for language in known], known


def _files_by_suffix(prefix: Path) -> dict[str, Path]:
    """Return the files `PREFIX.SUFFIX` by suffix. A suffix of two letters is put in lower case. A
    plain file is preferred to a compressed file, and `train.en` to `train.EN`."""
    if not prefix.parent.is_dir():
        return {}
    files: dict[str, Path] = {}
    paths = sorted(prefix.parent.iterdir(), key=lambda path: (not path.name.islower(), path.name))
    for path in paths:
        if _plain_name(path).rpartition(".")[0] == prefix.name and path.is_file():
            suffix = _suffix(path)
            files.setdefault(suffix.lower() if len(suffix) == 2 else suffix, path)
    return files


def _plain_name(path: Path) -> str:
    """Return the name of a file without the suffixes of a compression and of plain text."""
    return plain_name(path).removesuffix(".txt")


def _suffix(path: Path) -> str:
    """Return the last suffix of a file's name, often a language. The suffixes of a compression and
    of plain text are ignored."""
    return _plain_name(path).rpartition(".")[2]


def _check_files(name: str, paths: Sequence[Path], languages: Sequence[str]) -> None:
    """Check the files of a text.

    Raises:
        UsageError: a file is named twice, the suffixes are codes of other languages, or the only
            file of a text without a source is a table.
        UserError: a file does not exist, or is a document.
    """
    if len({path.resolve() for path in paths}) < len(paths):
        raise UsageError(f"{name}: the same file twice, {paths[-1]}; name a file for each side")
    codes = [_suffix(path) for path in paths]
    are_codes = all(CODE.fullmatch(code) for code in [*codes, *languages])
    if are_codes and list(map(short_code, codes)) != list(map(short_code, languages)):
        raise UsageError(
            f"{name}: names of {', '.join(codes)}; expected {', '.join(languages)}, or "
            f"{_OTHER_LANGUAGES}"
        )
    for path in paths:
        if not path.is_file():
            raise _no_text(path)
        check_no_document(path)
    if len(paths) == 1 and form_by_suffix(paths[0]):
        raise UsageError(f"{name}: a table; a text without a source is a file of lines")


def _no_text(path: Path) -> UserError:
    """Return the error for a path at which no text is found."""
    return UserError(f"{path}: no such text file; expected {KINDS}")


def _find_table(path: Path, languages: Sequence[str | None], columns: Sequence[str]) -> Text:
    """Locate the text of a table: find its form, its languages and the column of each language."""
    form = find_form(path)
    if form is None:
        raise UserError(
            f"{path}: one side only, or not the same separators in each line; expected {KINDS}"
        )
    rows = [row for _, row in islice(read_rows(path, form), _NUM_NAMED_ROWS) if row]
    if not rows:
        known = complete_languages(str(path), (), languages)
        return Text((path,), known, form, tuple(known))
    is_keyed = "1" not in rows[0]
    names = dict(rows[0])
    if is_keyed:
        for row in rows:
            names |= {key: key for key in row}
    names = rename_row_numbers(names, rows if is_keyed else rows[1:])
    known = complete_languages(str(path), names.values(), languages)
    if not columns and not is_keyed:
        columns = columns_by_script(rows, known)
    chosen, has_header = choose_columns(str(path), names, known, columns, is_keyed=is_keyed)
    return Text((path,), known, form, chosen, has_header)


def check_scripts(text: Text) -> None:
    """Raise UsageError if the text of a language is in another script than the language."""
    *sources, target_language = text.languages
    # A file of several sources, separated by tabs, has their languages as one name.
    languages = [*"+".join(sources).split("+"), target_language]
    num_joined = len(languages) - 2
    rows = []
    for source, target in islice(text.pairs(), _NUM_PAIRS_TO_CHECK):
        rows.append([*source.split("\t", num_joined), target])
    for language, *lines in zip(languages, *rows, strict=False):
        script = None if language == VECTORS else usual_script(language)
        if script and not is_in_script(lines, script):
            script_name = "Chinese characters" if script == "CJK" else script.capitalize()
            first_row = ", ".join(map(shorten, rows[0]))
            raise UsageError(
                f"{text}: {language} is written in {script_name}, but its text is not; the first "
                f"row is {first_row}; exchange the languages, the files, or --columns, or name the "
                "script, for example sr_Cyrl"
            )
