"""The interface of tokenizers."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal, Protocol

from seq2seq_attn.text.normalize import one_line

Side = Literal["source", "target"]
SIDES: tuple[Side, Side] = ("source", "target")
SPACE = "▁"
"""U+2581, SentencePiece's mark for a space."""
SOURCE_END = "\t"
"""Between the sources of a line, as text and as a token; also the mark after a sentence. Its id is EOS. No tokenizer
makes it from text: tabs become spaces first."""

VECTORS = "vectors"
"""The "language" of a source that is a file of vectors, and the name of its tokenizer."""


def join_marked(tokens: Sequence[str]) -> str:
    """The tokens joined, with a space where `SPACE` marks one."""
    return " ".join(one_line("".join(tokens)).replace(SPACE, " ").split())


class Tokenizer(Protocol):
    """Text to tokens and back. Any string is accepted, except where there are several sources or vectors. Results
    contain no line breaks."""

    @property
    def name(self) -> str:
        """`spacy`, `sentencepiece`, `characters`, `spaces`, `positions` or `vectors`."""
        ...

    def tokenize(self, text: str) -> list[str]:
        """The tokens of one line; none for a blank line."""
        ...

    def tokenize_many(self, texts: Sequence[str]) -> list[list[str]]:
        """`tokenize` for each line, faster."""
        ...

    def detokenize(self, tokens: Sequence[str]) -> str:
        """The line that has these tokens."""
        ...

    def save(self, directory: Path, side: str) -> None:
        """Write `<side>.tokenizer.json` and the model, if any, for `load_tokenizer`. `side` is a `Side`, or names
        one of several sources."""
        ...
