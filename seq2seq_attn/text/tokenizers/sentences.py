"""A tokenizer that marks the ends of sentences, for attention over the sentences of a line."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest
from pathlib import Path

from seq2seq_attn.files import write_json
from seq2seq_attn.text.tokenizers.base import SOURCE_END, SPACE, Tokenizer

SENTENCES = "sentences"
"""the name in saved settings"""
_ENDS_WITHOUT_SPACE = frozenset("。！？")
_ENDS = frozenset(".!?…") | _ENDS_WITHOUT_SPACE


class SentenceTokenizer:
    """Another tokenizer's tokens, with `SOURCE_END` after each token that ends a sentence: `.`, `!`, `?` and the like.
    A dot inside a word, as in `3.5` or `z.B.`, ends no sentence; spaCy keeps such words whole.

    If a line ends with such a token, its last sentence has a mark too, so that joined lines keep their boundary.
    """

    def __init__(self, tokenizer: Tokenizer) -> None:
        self.tokenizer = tokenizer
        self.name = tokenizer.name

    def tokenize(self, text: str) -> list[str]:
        """The tokens of one line."""
        return _with_ends(self.tokenizer.tokenize(text))

    def tokenize_many(self, texts: Sequence[str]) -> list[list[str]]:
        """`tokenize` for each line, faster."""
        return [_with_ends(tokens) for tokens in self.tokenizer.tokenize_many(texts)]

    def detokenize(self, tokens: Sequence[str]) -> str:
        """The line that has these tokens."""
        return self.tokenizer.detokenize([token for token in tokens if token != SOURCE_END])

    def save(self, directory: Path, side: str) -> None:
        """Write `<side>.tokenizer.json`, and the other tokenizer as that of `<side>.text`."""
        self.tokenizer.save(directory, f"{side}.text")
        write_json(directory / f"{side}.tokenizer.json", {"name": SENTENCES, "parts": [f"{side}.text"]})


def _with_ends(tokens: Sequence[str]) -> list[str]:
    marked = []
    has_spaces = any(SPACE in token for token in tokens)
    for token, following in zip_longest(tokens, tokens[1:], fillvalue=SPACE):
        marked.append(token)
        end = token.lstrip(SPACE)
        is_inside_a_word = has_spaces and end not in _ENDS_WITHOUT_SPACE and following[0].isalnum()
        if end in _ENDS and not is_inside_a_word:
            marked.append(SOURCE_END)
    return marked
