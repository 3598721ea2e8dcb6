"""What a tokenizer is."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal, Protocol

Side = Literal["source", "target"]
SIDES: tuple[Side, Side] = ("source", "target")


class Tokenizer(Protocol):
    """Text to tokens and back. Any string may come in: nothing raises. What comes out has no line end in it."""

    @property
    def name(self) -> str:
        """`spacy`, `sentencepiece` or `characters`."""
        ...

    def tokenize(self, text: str) -> list[str]:
        """The tokens of one line; none for a blank one."""
        ...

    def tokenize_many(self, texts: Sequence[str]) -> list[list[str]]:
        """The tokens of each line, as `tokenize` gives them, faster."""
        ...

    def detokenize(self, tokens: Sequence[str]) -> str:
        """The line that these tokens came from, or would have."""
        ...

    def save(self, directory: Path, side: Side) -> None:
        """Write `<side>.tokenizer.json` (and what it names), for `load_tokenizer`."""
        ...
