"""Tokens separated by spaces: text that is tokenized already, such as phonemes, or numbers of source positions."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from seq2seq_attn.files import write_json
from seq2seq_attn.text.normalize import normalize, one_line


class SpaceTokenizer:
    """Splits at spaces and joins by spaces. The name `positions` also says that the tokens are numbers of source
    positions (`data/surface.py`)."""

    def __init__(self, *, name: str = "spaces", lowercase: bool = False) -> None:
        self.name = name
        self.lowercase = lowercase

    def tokenize(self, text: str) -> list[str]:
        """The tokens of one line."""
        return normalize(text, lowercase=self.lowercase).split()

    def tokenize_many(self, texts: Sequence[str]) -> list[list[str]]:
        """The tokens of each line."""
        return [self.tokenize(text) for text in texts]

    def detokenize(self, tokens: Sequence[str]) -> str:
        """The tokens with spaces between them."""
        return " ".join(one_line(" ".join(tokens)).split())

    def save(self, directory: Path, side: str) -> None:
        """Write `<side>.tokenizer.json`."""
        write_json(directory / f"{side}.tokenizer.json", {"name": self.name, "lowercase": self.lowercase})
