"""Words for reports and attention analysis: spaCy's tokens, whatever the model's tokenizer is."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from itertools import accumulate
from typing import TYPE_CHECKING

from seq2seq_attn.errors import UsageError
from seq2seq_attn.text.normalize import normalize, one_line

if TYPE_CHECKING:
    from seq2seq_attn.text.tokenizers.spacy import SpacyTokenizer


def word_tokenizer(language: str) -> SpacyTokenizer:
    """spaCy's tokenizer of a language, or its multi-language tokenizer (`xx`) if it has none."""
    return _spacy(spacy_language(language))


def breaks_words(language: str, lines: Sequence[str]) -> float:
    """The share of lines that get a new space where they are tokenized and detokenized again. The rules of
    `detokenize.py` do not fit such a text, for example in Chinese, which has no spaces between words."""
    tokenizer = word_tokenizer(language)
    again = [tokenizer.detokenize(tokens) for tokens in tokenizer.tokenize_many(lines)]
    broken = [not _spaces(new) <= _spaces(one_line(normalize(line))) for new, line in zip(again, lines, strict=True)]
    return sum(broken) / max(1, len(broken))


def _spaces(line: str) -> set[int]:
    """The number of other characters before each space."""
    return {*accumulate(map(len, line.split(" ")))}


@lru_cache(maxsize=16)
def spacy_language(language: str) -> str:
    """The language if `spacy.blank` has a tokenizer for it, else `xx` (multi-language)."""
    try:
        _spacy(language)
    except UsageError:
        return "xx"
    return language


@lru_cache(maxsize=16)
def _spacy(code: str) -> SpacyTokenizer:
    from seq2seq_attn.text.tokenizers.spacy import SpacyTokenizer

    return SpacyTokenizer(code)
