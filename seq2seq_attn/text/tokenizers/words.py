"""What counts as a word of a language, whatever tokenizes a model: spaCy's tokens."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from seq2seq_attn.errors import UsageError

if TYPE_CHECKING:
    from seq2seq_attn.text.tokenizers.spacy import SpacyTokenizer


def word_tokenizer(language: str) -> SpacyTokenizer:
    """What counts as a word of a language, for lengths and for what attention is analyzed by: spaCy's tokens; those of
    `xx`, any language, where spaCy has no tokenizer for it."""
    return _spacy(spacy_language(language))


@lru_cache(maxsize=16)
def spacy_language(language: str) -> str:
    """The language itself if `spacy.blank` has a tokenizer for it, else `xx`, spaCy's for any language."""
    try:
        _spacy(language)
    except UsageError:
        return "xx"
    return language


@lru_cache(maxsize=16)
def _spacy(code: str) -> SpacyTokenizer:
    from seq2seq_attn.text.tokenizers.spacy import SpacyTokenizer

    return SpacyTokenizer(code)
