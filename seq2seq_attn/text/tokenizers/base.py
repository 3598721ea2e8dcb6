"""Tokenizers of text, and those that need no library: characters, and tokens separated by
spaces."""

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, Literal

from seq2seq_attn.text.marks import SPACE
from seq2seq_attn.text.normalize import normalize, one_line
from seq2seq_attn.text.tokenizers.source import Source

Side = Literal["source", "target"]
SIDES: tuple[Side, Side] = ("source", "target")


def join_marked(tokens: Sequence[str]) -> str:
    """The tokens joined, with a space where `SPACE` marks one."""
    return " ".join(one_line("".join(tokens)).replace(SPACE, " ").split())


class Tokenizer(Source):
    """Text to tokens and back. Any string is accepted. Results contain no line breaks."""

    has_positions = False
    """whether tokens are numbers of source positions"""

    def __init__(self, *, lowercase: bool = False) -> None:
        self.lowercase = lowercase

    @abstractmethod
    def detokenize(self, tokens: Sequence[str]) -> str:
        """The line that has these tokens."""

    def spell_source(self, tokens: Sequence[str]) -> Sequence[str]:
        """Source tokens as they are spelled on the side of this tokenizer, the target."""
        return tokens

    def settings(self) -> dict[str, Any]:
        return {"name": self.name, "lowercase": self.lowercase}


class CharacterTokenizer(Tokenizer):
    """Code points of the NFC form as tokens, with `SPACE` for spaces."""

    name = "characters"

    def tokenize(self, text: str) -> list[str]:
        return list(normalize(text, lowercase=self.lowercase).replace(" ", SPACE))

    def detokenize(self, tokens: Sequence[str]) -> str:
        return join_marked(tokens)


class SpaceTokenizer(Tokenizer):
    """Tokens separated by spaces: text that is tokenized already, such as phonemes."""

    name = "spaces"

    def tokenize(self, text: str) -> list[str]:
        return normalize(text, lowercase=self.lowercase).split()

    def detokenize(self, tokens: Sequence[str]) -> str:
        return " ".join(one_line(" ".join(tokens)).split())


class PositionTokenizer(SpaceTokenizer):
    """Numbers of source positions, from 1, separated by spaces: a source token is spelled as its
    number."""

    name = "positions"
    has_positions = True

    def spell_source(self, tokens: Sequence[str]) -> Sequence[str]:
        return [str(number) for number in range(1, len(tokens) + 1)]
