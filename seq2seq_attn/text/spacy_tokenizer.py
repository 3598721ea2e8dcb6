"""spaCy's rule-based tokens."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

from seq2seq_attn.errors import UsageError
from seq2seq_attn.files import write_json
from seq2seq_attn.text.detokenize import detokenize
from seq2seq_attn.text.normalize import normalize, one_line
from seq2seq_attn.text.tokenizers import Side


class SpacyTokenizer:
    """The tokeniser of `spacy.blank(language)`: needs no trained pipeline and is the one that those use."""

    name = "spacy"

    def __init__(self, language: str, *, lowercase: bool = False) -> None:
        """Make the tokeniser of a language.

        Raises:
            UsageError: spaCy has no tokeniser for it, or one that needs a package that is not installed.
        """
        import spacy

        self.language = language
        self.lowercase = lowercase
        try:
            self._nlp: Any = spacy.blank(language)
        except ImportError as error:
            reason = " ".join(str(error).split())
            raise UsageError(
                f"language {language!r}: spaCy cannot tokenise it ({reason}); "
                "choose data.tokenizer.name=sentencepiece or characters"
            ) from None

    def tokenize(self, text: str) -> list[str]:
        """The words and punctuation marks of one line."""
        return self.tokenize_many([text])[0]

    def tokenize_many(self, texts: Sequence[str]) -> list[list[str]]:
        """The words and punctuation marks of each line."""
        lines = (normalize(text, lowercase=self.lowercase) for text in texts)
        # Straight through the tokeniser: calling the pipeline would refuse lines above its `max_length`.
        with self._forgetting():
            return [[token.text for token in doc if not token.is_space] for doc in self._nlp.tokenizer.pipe(lines)]

    def detokenize(self, tokens: Sequence[str]) -> str:
        """The words put together by the rules of the language (`text/detokenize.py`)."""
        return one_line(detokenize(tokens, self.language))

    def save(self, directory: Path, side: Side) -> None:
        """Write `<side>.tokenizer.json`."""
        saved = {"name": self.name, "language": self.language, "lowercase": self.lowercase}
        write_json(directory / f"{side}.tokenizer.json", saved)

    def _forgetting(self) -> AbstractContextManager[Any]:
        # spaCy keeps every string it ever saw, except inside a memory zone (3.8 and later).
        zone = getattr(self._nlp, "memory_zone", nullcontext)
        entered: AbstractContextManager[Any] = zone()
        return entered
