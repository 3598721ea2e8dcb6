"""The class `Tokenizer`, and tokenizers that need no library: characters, and tokens separated by
spaces."""

import re
import unicodedata
from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, Literal

from seq2seq_attn.text.marks import SPACE, STAND_IN
from seq2seq_attn.text.normalize import normalize, one_line
from seq2seq_attn.text.tokenizers.source import Source

Side = Literal["source", "target"]
SIDES: tuple[Side, Side] = ("source", "target")
_HANGUL = re.compile(r"[가-힣]+")
"""Syllables of the Korean script. Each is written as two or three letters."""


def join_marked(tokens: Sequence[str]) -> str:
    """Return the text of tokens that mark spaces by `SPACE`."""
    joined = one_line("".join(tokens))
    words = joined.replace(SPACE, " ").split()
    # `STAND_IN` is a U+2581 of the text itself, which must not become a space.
    return " ".join(words).replace(STAND_IN, SPACE)


def normalize_marked(text: str, *, lowercase: bool) -> str:
    """Normalize a line for tokens that mark spaces by `SPACE`. A `SPACE` of the text itself becomes
    `STAND_IN`."""
    return normalize(text, lowercase=lowercase).replace(SPACE, STAND_IN)


class Tokenizer(Source):
    """Convert text to tokens and tokens to text. A tokenizer accepts any string, and its results
    contain no line breaks.

    The class is a `Source`, so the tokenizer of a text reads the source side too.
    """

    has_positions = False
    """whether the tokens are numbers of source positions"""

    def __init__(self, *, lowercase: bool = False) -> None:
        self.lowercase = lowercase

    @abstractmethod
    def detokenize(self, tokens: Sequence[str]) -> str:
        """Return the line of text that consists of the tokens."""

    def spell_source(self, tokens: Sequence[str]) -> Sequence[str]:
        """Return the target token that copies each source token, in the vocabulary of this target
        tokenizer. By default, a copy is spelled as the source token."""
        return tokens

    def settings(self) -> dict[str, Any]:
        return {"name": self.name, "lowercase": self.lowercase}


class CharacterTokenizer(Tokenizer):
    """Split a text in Unicode form NFC into code points, and syllables of Hangul into their
    letters. `SPACE` stands for a space."""

    name = "characters"

    def tokenize(self, text: str) -> list[str]:
        text = normalize_marked(text, lowercase=self.lowercase).replace(" ", SPACE)
        return list(_HANGUL.sub(_letters, text))

    def detokenize(self, tokens: Sequence[str]) -> str:
        return unicodedata.normalize("NFC", join_marked(tokens))


def _letters(syllables: re.Match[str]) -> str:
    return unicodedata.normalize("NFD", syllables[0])


class SpaceTokenizer(Tokenizer):
    """Split a text at spaces. The text is tokenized already, for example into phonemes."""

    name = "spaces"

    def tokenize(self, text: str) -> list[str]:
        return normalize(text, lowercase=self.lowercase).split()

    def detokenize(self, tokens: Sequence[str]) -> str:
        return " ".join(one_line(" ".join(tokens)).split())


class PositionTokenizer(SpaceTokenizer):
    """Split numbers of source positions at spaces. Numbers begin at 1, and a source token is
    spelled as its number."""

    name = "positions"
    has_positions = True

    def spell_source(self, tokens: Sequence[str]) -> Sequence[str]:
        return [str(number) for number in range(1, len(tokens) + 1)]
