"""Choose the column of a table for each language, by the names of the columns or by
`data.columns`."""

import re
from collections.abc import Callable, Sequence

from seq2seq_attn.config import shorten
from seq2seq_attn.errors import UsageError
from seq2seq_attn.text.languages import english_name, short_code
from seq2seq_attn.text.scripts import is_in_script, usual_script
from seq2seq_attn.text.tables import Row

_ROLES = [("source", "src", "input"), ("target", "tgt", "trg", "output")]
"""names of the source column and of the target column"""
_ROW_NUMBERS = ("id", "no", "nr")
"""names of columns of row numbers that are also codes of languages: Indonesian, Norwegian, South
Ndebele"""
_MAX_WORDS = 3
"""maximum number of words in the name of a column; longer cells are text"""


def choose_columns(
    table: str, names: Row, languages: Sequence[str], columns: Sequence[str], *, is_keyed: bool
) -> tuple[tuple[str, ...], bool]:
    """Return the key of the column of each language, and whether the first row is a header.

    Args:
        table: the name of the file, for errors.
        names: the name of each column by its key. For a table without keys, the cells of the first
            row, which may be text.
        languages: the languages of the sources, then of the target.
        columns: the number or name of the column of each language. If empty, the columns are chosen
            by `names`. For tables with keys, numbers may only repeat the order of `names`.
        is_keyed: whether the rows have keys, as in JSON and TMX.

    Raises:
        UsageError: neither `names` nor `columns` identify the columns, or `names` and `columns`
            contradict each other.
    """
    named = columns_by_name(names, languages)
    are_numbers = all(column.isdigit() for column in columns)  # true without columns
    if are_numbers and (is_keyed or not columns):
        if not named:
            raise _unclear(table, names, languages, "does not name exactly one column each")
        if columns and not _repeats_order(columns, named, names):
            reason = f"--columns {','.join(columns)} contradicts the keys"
            raise _unclear(table, dict(zip(named, named, strict=True)), languages, reason)
        return named, not is_keyed
    if len(columns) != len(languages):
        raise _unclear(table, names, languages, "--columns has too few or too many columns")
    # A key is a number in a table without keys.
    keys = {key: key for key in names}
    if not are_numbers:
        keys = {name.strip().lower(): key for key, name in names.items()}
    chosen = []
    for column in columns:
        key = keys.get(column.lower())
        if key is None or key in chosen:
            reason = f"has no column {column}, or --columns names it twice,"
            raise _unclear(table, names, languages, reason)
        chosen.append(key)
    if are_numbers and named and named != tuple(chosen):
        raise _unclear(table, names, languages, f"names its columns {', '.join(named)}")
    has_header = not is_keyed and (bool(named) or not are_numbers)
    return tuple(chosen), has_header


def _repeats_order(numbers: Sequence[str], keys: Sequence[str], names: Row) -> bool:
    """Return whether numbers of columns put `keys` in the order in which they stand in `names`."""
    if len(numbers) != len(keys):
        return False
    number_by_key = dict(zip(keys, map(int, numbers), strict=True))
    by_number = sorted(keys, key=number_by_key.__getitem__)
    return by_number == sorted(keys, key=list(names).index)


def _unclear(table: str, names: Row, languages: Sequence[str], reason: str) -> UsageError:
    """Return an error that shows the first row and explains how to name the columns."""
    cells = enumerate(names.values(), 1)
    shown = ", ".join(f"{number}: {shorten(cell)}" for number, cell in cells)
    return UsageError(
        f"{table}: {reason} for {', '.join(languages)}; its first row is {shown}; name the columns "
        f"in this order, for example --columns {','.join(list(names)[: len(languages)])}"
    )


def rename_row_numbers(names: Row, rows: Sequence[Row]) -> dict[str, str]:
    """Return the names of columns with `row number` in place of names in `_ROW_NUMBERS`, if all
    cells of the column in `rows` are numbers."""
    renamed = dict(names)
    for key, name in names.items():
        if "".join(_words(name)) not in _ROW_NUMBERS:
            continue
        if all(row.get(key, "").strip().isdigit() for row in rows):
            renamed[key] = "row number"
    return renamed


def columns_by_name(names: Row, languages: Sequence[str]) -> tuple[str, ...]:
    """Find the column of each language by the name of the column, which contains the code or the
    English name of the language, or names the side: `text_en`, `French`, `source`. Return an empty
    tuple if a column is missing or not unique."""
    one_word_names = {}
    short_names = {}
    for key, name in names.items():
        words = _words(name)
        if len(words) > _MAX_WORDS:
            continue
        short_names[key] = name
        if " " not in name.strip():
            one_word_names[key] = name
    columns = _match(one_word_names, [(language,) for language in languages])
    if not columns and len(languages) == 2:
        columns = _match(one_word_names, _ROLES)
    if not columns:
        columns = _match(short_names, [(english_name(language),) for language in languages])
    return columns


def columns_by_script(rows: Sequence[Row], languages: Sequence[str]) -> tuple[str, ...]:
    """Find the column of each language by the script. A column fits a language if both the first
    row and all rows together are in the script of the language. Return an empty tuple unless
    exactly one column, besides those of earlier languages, fits each language."""
    columns = []
    for language in languages:
        script = usual_script(language)
        if script is None:
            return ()
        matching = []
        for key, first in rows[0].items():
            if key in columns:
                continue
            is_first_in_script = is_in_script([first], script, 0.5)
            if is_first_in_script and is_in_script((row[key] for row in rows), script, 0.5):
                matching.append(key)
        if len(matching) != 1:
            return ()
        columns += matching
    return tuple(columns)


def _match(names: Row, labels: Sequence[Sequence[str]]) -> tuple[str, ...]:
    """Find the column of each label. A label is a group of words with the same meaning. Names that
    contain a label are considered only if a label has no name of its own."""
    return _choose(names, labels, _equals) or _choose(names, labels, _contains)


def _choose(
    names: Row,
    labels: Sequence[Sequence[str]],
    matches: Callable[[Sequence[str], Sequence[str]], bool],
) -> tuple[str, ...]:
    """Return the column of each label. Return an empty tuple unless as many columns match a label
    as `labels` has this label."""
    columns: list[str] = []
    for label in labels:
        matching = [key for key, name in names.items() if matches(_words(name), label)]
        # A region in a label, as in `pt-BR`, chooses between columns of one language.
        with_region = [key for key in matching if _words(names[key]) == _words(label[0])]
        if len(_words(label[0])) > 1 and with_region:
            matching = with_region
        if len(matching) != labels.count(label):
            return ()
        unused = [key for key in matching if key not in columns]
        if not unused:
            return ()
        columns.append(unused[0])
    return tuple(columns)


def _equals(words: Sequence[str], label: Sequence[str]) -> bool:
    """Return whether the words of a name are a label, or a code or name of the label's language."""
    is_language = len(words) == 1 and short_code(words[0]) in map(short_code, label)
    return is_language or words in list(map(_words, label))


def _contains(words: Sequence[str], label: Sequence[str]) -> bool:
    """Return whether the words of a name contain a label, or begin with its language."""
    codes = list(map(short_code, label))
    begins = bool(words) and short_code(words[0]) in codes
    return begins or any(set(words).issuperset(_words(word)) for word in [*label, *codes])


def _words(name: str) -> list[str]:
    """Return the words of a name in lower case."""
    return re.findall(r"[^\W_]+", name.lower())
