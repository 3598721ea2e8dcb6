"""Which columns of a table are in which languages: by their names, or as `data.columns` says."""

import re
from collections.abc import Sequence

from seq2seq_attn.errors import UsageError
from seq2seq_attn.text.languages import short_code
from seq2seq_attn.text.tables import Row

_ROLES = [("source", "src", "input"), ("target", "tgt", "trg", "output")]
_MAX_WORDS = 3
"""the name of a column has at most so many words"""
_MAX_SHOWN = 40
"""number of characters of a cell that an error shows"""


def choose_columns(
    table: str, names: Row, languages: Sequence[str], columns: Sequence[str], *, is_keyed: bool
) -> tuple[tuple[str, ...], bool]:
    """The column of each language, and whether the first row holds names.

    Args:
        table: the name of the file.
        names: of the columns; or the first row, which may be text.
        languages: of the sources and the target.
        columns: numbers or names for the languages; empty: the names tell. Numbers do not apply to
            rows with keys.
        is_keyed: whether rows have keys.

    Raises:
        UsageError: neither tells, or they contradict each other.
    """
    named = columns_by_name(names, languages)
    are_numbers = all(column.isdigit() for column in columns)
    if are_numbers and (is_keyed or not columns):
        if not named:
            raise _unclear(table, names, languages, "does not name its columns")
        return named, not is_keyed
    if len(columns) != len(languages):
        raise _unclear(table, names, languages, f"{len(columns)} columns are named")
    keys = {key: key for key in names}
    if not are_numbers:
        keys = {name.strip().lower(): key for key, name in names.items()}
    chosen = []
    for column in columns:
        key = keys.get(column.lower())
        if key is None:
            raise _unclear(table, names, languages, f"has no column {column}")
        chosen.append(key)
    if are_numbers and named and named != tuple(chosen):
        raise _unclear(table, names, languages, f"names its columns {', '.join(named)}")
    has_header = not is_keyed and (bool(named) or not are_numbers)
    return tuple(chosen), has_header


def _unclear(table: str, names: Row, languages: Sequence[str], reason: str) -> UsageError:
    """The error that shows the first row and says how to name its columns."""
    cells = [name[:_MAX_SHOWN] for name in names.values()]
    shown = ", ".join(f"{number}: {cell}" for number, cell in enumerate(cells, 1))
    return UsageError(
        f"{table}: {reason} for {', '.join(languages)}; its first row is {shown}; name the columns "
        f"in this order, for example --columns {','.join(list(names)[: len(languages)])}"
    )


def columns_by_name(names: Row, languages: Sequence[str]) -> tuple[str, ...]:
    """The columns named after the languages, the sides, or the languages in English, alone or with
    other words, for example `text_en`. Empty if one is missing or not unique."""
    one_word = {}
    short = {}
    num_english = 0
    for key, name in names.items():
        words = _words(name)
        if len(words) > _MAX_WORDS:
            continue
        short[key] = name
        if " " not in name.strip():
            one_word[key] = name
        num_english += name.isascii() and all(len(word) > 2 for word in words)
    columns = _match(one_word, [(language,) for language in languages])
    if not columns and len(languages) == 2:
        columns = _match(one_word, _ROLES)
    if not columns and num_english >= len(languages):
        from seq2seq_attn.text.tokenizers.spacy import english_name  # spaCy takes a second

        columns = _match(short, [(english_name(language),) for language in languages])
    return columns


def _match(names: Row, labels: Sequence[Sequence[str]]) -> tuple[str, ...]:
    """The column of each label, which may be one of several words; empty if one is missing."""
    columns: list[str] = []
    for label in labels:
        wanted = [_words(word) for word in label]
        codes = [short_code(word) for word in label]
        equal = []
        same_language = []
        containing = []
        for key, name in names.items():
            if key in columns:
                continue
            words = _words(name)
            if words in wanted:
                equal.append(key)
            if short_code(name.strip()) in codes:
                same_language.append(key)
            if any(set(words).issuperset(word) for word in wanted):
                containing.append(key)
        matching = equal[:1] or same_language or containing
        if len(matching) != 1:
            return ()
        columns += matching
    return tuple(columns)


def _words(name: str) -> list[str]:
    return re.findall(r"[^\W_]+", name.lower())
