"""The interface of tokenizers, and those that need no library: characters, and tokens separated by
spaces."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

from seq2seq_attn.errors import UserError
from seq2seq_attn.files import write_json
from seq2seq_attn.text.normalize import normalize, one_line

Side = Literal["source", "target"]
SIDES: tuple[Side, Side] = ("source", "target")
SPACE = "▁"
"""U+2581, SentencePiece's mark for a space."""
SOURCE_END = "\t"
"""Between the sources of a line, as text and as a token; also the mark after a sentence. Its id is
EOS. No tokenizer makes it from text: tabs become spaces first."""

NONE = "none"
"""The "language" of the source of a language model, which has none, and the name of its
tokenizer."""
VECTORS = "vectors"
"""The "language" of a source that is a file of vectors, and the name of its tokenizer."""


def join_marked(tokens: Sequence[str]) -> str:
    """The tokens joined, with a space where `SPACE` marks one."""
    return " ".join(one_line("".join(tokens)).replace(SPACE, " ").split())


class Tokenizer(ABC):
    """Text to tokens and back. Any string is accepted, except where there are several sources or
    vectors. Results contain no line breaks."""

    name: str
    """`spacy`, `sentencepiece`, `characters`, `spaces`, `positions`, `vectors` or `none`"""

    def __init__(self, *, lowercase: bool = False) -> None:
        self.lowercase = lowercase

    @abstractmethod
    def tokenize(self, text: str) -> list[str]:
        """The tokens of one line; none for a blank line."""

    def tokenize_many(self, texts: Sequence[str]) -> list[list[str]]:
        """`tokenize` for each line; some tokenizers do this faster."""
        return [self.tokenize(text) for text in texts]

    @abstractmethod
    def detokenize(self, tokens: Sequence[str]) -> str:
        """The line that has these tokens."""

    def spell_source(self, tokens: Sequence[str]) -> Sequence[str]:
        """Source tokens as they are spelled on the side of this tokenizer, the target."""
        return tokens

    def save(self, directory: Path, side: str) -> None:
        """Write `<side>.tokenizer.json` and the model, if any, for `load_tokenizer`. `side` is a
        `Side`, or names one of several sources."""
        write_json(directory / f"{side}.tokenizer.json", {"name": self.name, **self.settings()})

    def settings(self) -> dict[str, Any]:
        """The settings that `load_tokenizer` needs, without the tokenizer's name."""
        return {"lowercase": self.lowercase}


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

    def spell_source(self, tokens: Sequence[str]) -> Sequence[str]:
        return [str(number) for number in range(1, len(tokens) + 1)]


class NoTokenizer(Tokenizer):
    """The tokenizer of a missing source: blank lines only."""

    name = NONE

    def tokenize(self, text: str) -> list[str]:
        """No tokens. Raises UserError for a line that is not blank."""
        if text.strip():
            raise UserError(
                "the run is a language model, which reads no source; name a run that translates"
            )
        return []

    def detokenize(self, tokens: Sequence[str]) -> str:
        return ""
