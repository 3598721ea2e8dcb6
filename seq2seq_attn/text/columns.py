"""Which columns of a table are in which languages: by their names, or as `data.columns` says."""

import re
from collections.abc import Callable, Sequence

from seq2seq_attn.errors import UsageError
from seq2seq_attn.text.languages import short_code
from seq2seq_attn.text.tables import Row

_ROLES = [("source", "src", "input"), ("target", "tgt", "trg", "output")]
_MAX_WORDS = 3
"""the name of a column has at most so many words"""


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
    are_numbers = all(column.isdigit() for column in columns)
    named = columns_by_name(names, languages)
    if named and (not columns or (is_keyed and are_numbers)):
        return named, not is_keyed
    if not columns or (is_keyed and are_numbers):
        raise _unclear(table, names, languages, "does not name its columns")
    if len(columns) != len(languages):
        raise _unclear(table, names, languages, f"{len(columns)} columns are named")
    if are_numbers:
        if not names.keys() >= {*columns}:
            raise _unclear(table, names, languages, f"no column {', '.join(columns)}")
        if named and named != tuple(columns):
            raise _unclear(table, names, languages, f"names its columns {', '.join(named)}")
        return tuple(columns), bool(named)
    keys = {name.strip().lower(): key for key, name in names.items()}
    missing = [column for column in columns if column.lower() not in keys]
    if missing:
        raise _unclear(table, names, languages, f"no column {', '.join(missing)}")
    return tuple(keys[column.lower()] for column in columns), not is_keyed


def _unclear(table: str, names: Row, languages: Sequence[str], reason: str) -> UsageError:
    """The error that shows the first row and says how to name its columns."""
    shown = ", ".join(f"{number}: {name}" for number, name in enumerate(names.values(), 1))
    return UsageError(
        f"{table}: {reason} for {', '.join(languages)}; its first row is {shown}; name the columns "
        f"in this order, for example --columns {','.join(list(names)[: len(languages)])}"
    )


def columns_by_name(names: Row, languages: Sequence[str]) -> tuple[str, ...]:
    """The columns named after the languages, the sides, or the languages in English, alone or with
    other words, for example `text_en`. Empty if one is missing or not unique."""
    short_names = {key: name for key, name in names.items() if len(_words(name)) <= _MAX_WORDS}
    one_word = {key: name for key, name in short_names.items() if " " not in name.strip()}
    columns = _match(one_word, [(language,) for language in languages])
    if not columns and len(languages) == 2:
        columns = _match(one_word, _ROLES)
    if not columns and len(list(filter(_is_english, short_names.values()))) >= len(languages):
        from seq2seq_attn.text.tokenizers.spacy import english_name  # spaCy takes a second

        columns = _match(short_names, [(english_name(language),) for language in languages])
    return columns


def _match(names: Row, labels: Sequence[Sequence[str]]) -> tuple[str, ...]:
    """The column of each label, which may be one of several words; empty if one is missing."""
    tests: list[Callable[[str, str], bool]] = [_is_equal, _is_same_language, _contains]
    columns: list[str] = []
    for words in labels:
        for test in tests:
            keys = [
                key
                for key, name in names.items()
                if key not in columns and any(test(name, word) for word in words)
            ]
            if keys:
                break
        else:
            return ()
        if test is not _is_equal and len(keys) > 1:
            return ()
        columns.append(keys[0])
    return tuple(columns)


def _is_equal(name: str, word: str) -> bool:
    return _words(name) == _words(word)


def _is_same_language(name: str, word: str) -> bool:
    return short_code(name.strip()) == short_code(word)


def _contains(name: str, word: str) -> bool:
    return {*_words(word)} <= {*_words(name)}


def _is_english(name: str) -> bool:
    """Whether a name may hold the English name of a language."""
    return name.isascii() and all(len(word) > 2 for word in _words(name))


def _words(name: str) -> list[str]:
    return re.findall(r"[^\W_]+", name.lower())
