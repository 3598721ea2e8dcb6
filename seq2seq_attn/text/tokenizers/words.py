"""Words for reports and attention analysis, whatever the model's tokenizer is: spaCy's tokens, or
characters where the language does not separate words."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from importlib.metadata import version
from itertools import accumulate
from typing import TYPE_CHECKING

from seq2seq_attn.errors import UsageError
from seq2seq_attn.text.languages import separates_words, short_code
from seq2seq_attn.text.normalize import normalize, one_line

if TYPE_CHECKING:
    from seq2seq_attn.text.tokenizers.spacy import SpacyTokenizer


def split_words(language: str, lines: Sequence[str]) -> list[list[str]]:
    """The words of each line, by spaCy's tokenizer of the language or its multi-language tokenizer
    (`xx`)."""
    if not separates_words(language):
        return [list(normalize(line).replace(" ", "")) for line in lines]
    return _spacy(spacy_language(language)).tokenize_many(lines)


def words_name(language: str) -> str:
    """The name of what counts as words, for reports: `spacy.blank:de:3.8.0` or `characters`."""
    return (
        f"spacy.blank:{spacy_language(language)}:{version('spacy')}"
        if separates_words(language)
        else "characters"
    )


def breaks_words(language: str, lines: Sequence[str]) -> float:
    """The share of lines that get a new space where they are tokenized and detokenized again. The
    rules of `detokenize.py` do not fit such a text, for example in Chinese, which has no spaces
    between words."""
    tokenizer = _spacy(spacy_language(language))
    again = [tokenizer.detokenize(tokens) for tokens in tokenizer.tokenize_many(lines)]
    broken = [
        not _spaces(new) <= _spaces(one_line(normalize(line)))
        for new, line in zip(again, lines, strict=True)
    ]
    return sum(broken) / max(1, len(broken))


def _spaces(line: str) -> set[int]:
    """The number of other characters before each space."""
    return {*accumulate(map(len, line.split(" ")))}


@lru_cache(maxsize=16)
def spacy_language(language: str) -> str:
    """The language's code if `spacy.blank` has a tokenizer for it, else `xx` (multi-language)."""
    try:
        _spacy(short_code(language))
    except UsageError:
        return "xx"
    return short_code(language)


@lru_cache(maxsize=16)
def _spacy(code: str) -> SpacyTokenizer:
    from seq2seq_attn.text.tokenizers.spacy import SpacyTokenizer

    return SpacyTokenizer(code)
