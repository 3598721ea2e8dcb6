"""Characters as tokens."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from seq2seq_attn.files import write_json
from seq2seq_attn.text.normalize import normalize
from seq2seq_attn.text.tokenizers.base import SPACE, join_marked


class CharacterTokenizer:
    """Code points of the NFC form as tokens, with `SPACE` for spaces."""

    name = "characters"

    def __init__(self, *, lowercase: bool = False) -> None:
        self.lowercase = lowercase

    def tokenize(self, text: str) -> list[str]:
        """The characters of one line."""
        return list(normalize(text, lowercase=self.lowercase).replace(" ", SPACE))

    def tokenize_many(self, texts: Sequence[str]) -> list[list[str]]:
        """The characters of each line."""
        return [self.tokenize(text) for text in texts]

    def detokenize(self, tokens: Sequence[str]) -> str:
        """The characters as one string."""
        return join_marked(tokens)

    def save(self, directory: Path, side: str) -> None:
        """Write `<side>.tokenizer.json`."""
        write_json(directory / f"{side}.tokenizer.json", {"name": self.name, "lowercase": self.lowercase})
