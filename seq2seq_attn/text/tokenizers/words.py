"""Words for reports and attention analysis: spaCy's tokens, whatever the model's tokenizer is."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from seq2seq_attn.errors import UsageError

if TYPE_CHECKING:
    from seq2seq_attn.text.tokenizers.spacy import SpacyTokenizer


def word_tokenizer(language: str) -> SpacyTokenizer:
    """spaCy's tokenizer of a language, or its multi-language tokenizer (`xx`) if it has none."""
    return _spacy(spacy_language(language))


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
