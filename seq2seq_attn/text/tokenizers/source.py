"""The interface of a source: it reads the lines of the source side.

| a line is | implementation |
|---|---|
| a text | every `Tokenizer` (`base.py`): it has the defaults of this class |
| a text whose sentences are marked | `SentenceSource` (`several.py`) |
| several columns, separated by tabs | `SeveralSources` (`several.py`) |
| the name of a file of vectors | `VectorSource` (`vectors.py`) |
| blank, for a language model | `NoSource` |

Tokens are the units that attention is over. Where a line has several columns, the token
`SOURCE_END` stands between them.

Shapes: S source positions without EOS, F dimension of a vector.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from seq2seq_attn.errors import UserError
from seq2seq_attn.files import atomic_path, write_json
from seq2seq_attn.text.links import words_of
from seq2seq_attn.text.marks import SOURCE_END, SPACE

if TYPE_CHECKING:
    from seq2seq_attn.text.tokenizers.vectors import FloatArray

_SENTENCE_ENDS = (*".!?…。！？", SOURCE_END)


class Source(ABC):
    """Reads source lines. The defaults are those of a single text."""

    name: str
    """the kind of tokens: `spacy`, `sentencepiece`, `characters`, `spaces`, `positions`, `vectors`
    or `none`"""
    num_columns: int = 1
    """columns of a line, separated by tabs; 0 for a language model"""
    vector_sizes: Sequence[int | None] = (None,)
    """for each encoder, the dimension of its vectors; None for text"""

    model: bytes | None = None
    """the model of SentencePiece, if there is one"""

    @property
    def vector_size(self) -> int | None:
        """F, the dimension of the vectors that a column names; None: all columns are text."""
        return next(filter(None, self.vector_sizes), None)

    @abstractmethod
    def tokenize(self, text: str) -> list[str]:
        """The tokens of one line; none for a blank line. Raises UserError: a column is missing, or
        names a file that cannot be read."""

    def tokenize_many(self, texts: Sequence[str]) -> list[list[str]]:
        """`tokenize` for each line; some kinds do this faster."""
        return [self.tokenize(text) for text in texts]

    def columns(self, tokens: Sequence[str]) -> Sequence[Sequence[str]]:
        """The tokens of each column of a line."""
        return [tokens]

    def segments(self, tokens: Sequence[str], max_length: int) -> list[list[str]]:
        """Split the tokens of a line into segments with at most `max_length` tokens per column."""
        return split_tokens(tokens, max_length)

    def words(self, line: str, tokens: Sequence[str]) -> list[str]:
        """The words that links number, between spaces and tabs. Each vector is a word."""
        return words_of(line)

    def vector_positions(self, sequence: Sequence[object], end: object = SOURCE_END) -> range:
        """The positions of vectors among the tokens of a line, or among its ids with EOS as
        `end`."""
        return range(0)

    def vectors(self, line: str, tokens: Sequence[str]) -> FloatArray:
        """The vectors of these tokens of a line, [S, F], 0 for tokens of text. Raises UserError:
        the file has changed since it was tokenized; ValueError: all columns are text."""
        raise ValueError("a source without vectors")

    def settings(self) -> dict[str, Any]:
        """The name, and the settings that `load_source` needs."""
        return {"name": self.name}

    def save(self, directory: Path, side: str) -> None:
        """Write `<side>.tokenizer.json` and the model, if any, for `load_source`."""
        if self.model is not None:
            with atomic_path(directory / f"{side}.sentencepiece.model") as temporary:
                temporary.write_bytes(self.model)
        write_json(directory / f"{side}.tokenizer.json", self.settings())


class NoSource(Source):
    """The source of a language model: blank lines only."""

    name = "none"
    num_columns = 0

    def tokenize(self, text: str) -> list[str]:
        """No tokens. Raises UserError for a line that is not blank."""
        if text.strip():
            raise UserError(
                "the run is a language model, which reads no source; name a run that translates"
            )
        return []


def split_tokens(tokens: Sequence[str], max_length: int) -> list[list[str]]:
    """Split tokens into segments of at most `max_length`. A segment ends after the last sentence
    end in its second half, else before the last token there that starts a word, else at its maximum
    length."""
    segments = []
    start = 0
    while len(tokens) - start > max_length:
        stop = start + max_length
        stops = range(stop, start + max_length // 2, -1)
        after_sentence = (end for end in stops if tokens[end - 1].endswith(_SENTENCE_ENDS))
        before_word = (end for end in stops if tokens[end].startswith(SPACE))
        stop = next(after_sentence, None) or next(before_word, stop)
        segments.append(list(tokens[start:stop]))
        start = stop
    return [*segments, list(tokens[start:])]
