"""Split lines into words for reports and attention analysis, independently of the model's
tokenizer. Words are spaCy's tokens, or characters in languages without spaces between words."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from importlib.metadata import version
from itertools import accumulate
from typing import TYPE_CHECKING

from seq2seq_attn.errors import UsageError, UserError
from seq2seq_attn.text.languages import separates_words, short_code
from seq2seq_attn.text.normalize import normalize, one_line

if TYPE_CHECKING:
    from seq2seq_attn.text.tokenizers.spacy import SpacyTokenizer


def split_words(language: str, lines: Sequence[str]) -> list[list[str]]:
    """Return the words of each line, split by spaCy's tokenizer of the language, or by spaCy's
    multi-language tokenizer (`xx`) if the language has none."""
    if not separates_words(language):
        return [list(normalize(line).replace(" ", "")) for line in lines]
    return _spacy(language).tokenize_many(lines)


def words_name(language: str) -> str:
    """Return the name of the word tokenizer for reports: `spacy.blank:de:3.8.0` or `characters`."""
    if not separates_words(language):
        return "characters"
    return f"spacy.blank:{spacy_language(language)}:{version('spacy')}"


def measure_broken_lines(language: str, lines: Sequence[str]) -> float:
    """Return the share of lines in which tokenization and detokenization insert a space, or remove
    the spaces around a dash or a slash. A high share means that the rules of `detokenize.py` do not
    fit the text, for example Chinese, which has no spaces between words."""
    tokenizer = _spacy(language)
    detokenized = [tokenizer.detokenize(tokens) for tokens in tokenizer.tokenize_many(lines)]
    num_broken = 0
    for new, line in zip(detokenized, lines, strict=True):
        old = one_line(normalize(line))
        inserted = _spaces(new) - _spaces(old)
        is_dash_joined = " - " in old and " - " not in new
        is_slash_joined = " / " in old and " / " not in new
        if inserted or is_dash_joined or is_slash_joined:
            num_broken += 1
    return num_broken / max(1, len(lines))


def like_number(language: str, word: str) -> bool:
    """Return whether a word is a number, such as `12` or `three`. Without spaCy, only digits
    count."""
    try:
        return _spacy(language).is_number(word)
    except UserError:
        return word.isdecimal()


def _spaces(line: str) -> set[int]:
    """Return, for each space of a line and for its end, the number of characters before it that are
    not spaces."""
    return set(accumulate(map(len, line.split(" "))))


def spacy_language(language: str) -> str:
    """Return the language's code if `spacy.blank` has a tokenizer for the language, or else `xx`
    (multi-language)."""
    return _spacy(language).language


@lru_cache(maxsize=16)
def _spacy(language: str) -> SpacyTokenizer:
    """Create spaCy's tokenizer of a language, or the multi-language tokenizer (`xx`) if the
    language has none. The result is kept for later calls."""
    from seq2seq_attn.text.tokenizers.spacy import SpacyTokenizer

    try:
        return SpacyTokenizer(short_code(language))
    except UsageError:
        return SpacyTokenizer("xx")
