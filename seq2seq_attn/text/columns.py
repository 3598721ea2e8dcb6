"""Which columns of a table are in which languages, by their names or by their words."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import permutations

from seq2seq_attn.text.languages import CODE

Row = Mapping[str, str]
"""text by key (JSON), by language (TMX), or by the number of its column from "1" (TSV, CSV); a
blank line is empty"""
_ROLES = ("source", "src", "input"), ("target", "tgt", "trg", "output")
_MIN_WORDS, _MARGIN = 5, 0.1
"""Without names, columns are read in the order of the file, unless in another order the share of
the languages' frequent words, of which at least so many occur, is higher by this margin."""


def is_text(cells: Sequence[str]) -> bool:
    """Whether a column may be text: mostly letters, not a code, and not the same few values again
    and again."""
    filled = [cell for cell in cells if cell.strip()]
    letters = "".join(filled).replace(" ", "")
    is_varied = len(filled) == 1 or len(set(filled)) > 1 + len(filled) / 10
    return (
        is_varied
        and 2 * sum(map(str.isalpha, letters)) > len(letters)
        and not all(map(CODE.fullmatch, filled))
    )


def columns_by_name(names: Row, texts: Sequence[str], languages: Sequence[str]) -> tuple[str, ...]:
    """The columns named after the languages, the sides, or the languages in English; or those of
    `texts` with such a word in their names, for example `text_en`. Empty if one is missing."""
    vocabularies = [
        [(language,) for language in languages],
        *([_ROLES] if len(languages) == 2 else []),
    ]
    if sum(name.isalpha() and len(name) > 2 for name in names.values()) >= len(languages):
        from seq2seq_attn.text.tokenizers.spacy import (
            english_name,
        )  # spaCy takes a second to import

        vocabularies.append([(english_name(language),) for language in languages])
    parts = {key: _parts(name) for key, name in names.items() if " " not in name.strip()}
    for vocabulary in vocabularies:
        chosen: list[str] = []
        for words in vocabulary:
            equal = [key for key in parts if parts[key] in map(_parts, words)]
            containing = [
                key
                for key in texts
                if any({*_parts(word)} <= {*parts.get(key, [])} for word in words)
            ]
            chosen += [key for key in [*equal, *containing] if key not in chosen][:1]
        if len(chosen) == len(languages):
            return tuple(chosen)
    return ()


def _parts(name: str) -> list[str]:
    return re.findall(r"[^\W_]+", name.lower())


def columns_by_words(
    rows: Sequence[Row], texts: Sequence[str], languages: Sequence[str]
) -> tuple[str, ...]:
    """Those of the columns `texts` in which the languages' frequent words are most frequent; the
    first ones, unless others are clearly better."""
    from seq2seq_attn.text.tokenizers.spacy import stop_words

    shares: dict[tuple[str, str], float] = {}
    for key in texts:
        words = Counter(re.findall(r"\w+", " ".join(row.get(key, "") for row in rows).lower()))
        for language in languages:
            frequent = [count for word, count in words.items() if word in stop_words(language)]
            shares[key, language] = (
                sum(frequent) / words.total() if len(frequent) >= _MIN_WORDS else 0.0
            )

    def fit(columns: Sequence[str]) -> float:
        return sum(map(shares.__getitem__, zip(columns, languages, strict=True)))

    best = max(permutations(texts[:12], len(languages)), key=fit)
    first = tuple(texts[: len(languages)])
    return best if fit(best) > fit(first) + _MARGIN else first
