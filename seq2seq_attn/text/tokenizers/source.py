"""The interface `Source`: an object that reads the lines of the source side and tokenizes them.

| a line is | implementation |
|---|---|
| a text | every `Tokenizer` (`base.py`), which uses the defaults of `Source` |
| a text whose sentences are marked | `SentenceSource` (`several.py`) |
| several columns, separated by tabs | `SeveralSources` (`several.py`) |
| the name of a file of vectors | `VectorSource` (`vectors.py`) |
| blank, for a language model | `NoSource` |

Attention is over tokens. Where a line has several columns, the token `SOURCE_END` stands between
the tokens of two columns.

Shapes: S source positions without EOS, F dimension of a vector.
"""

from __future__ import annotations

from abc import ABC
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from seq2seq_attn.errors import UserError
from seq2seq_attn.files import atomic_path, write_json
from seq2seq_attn.text.links import words_of
from seq2seq_attn.text.marks import SOURCE_END, SPACE
from seq2seq_attn.text.sentences import SENTENCE_ENDS

if TYPE_CHECKING:
    from seq2seq_attn.text.tokenizers.vectors import FloatArray

_SENTENCE_ENDS = (*SENTENCE_ENDS, SOURCE_END)


class Source(ABC):
    """Tokenize the lines of the source side. The default methods are for lines of one text."""

    name: str
    """the kind of tokens: `spacy`, `sentencepiece`, `characters`, `spaces`, `positions`, `vectors`
    or `none`"""
    num_columns: int = 1
    """number of columns in a line, separated by tabs; 0 for a language model"""
    vector_sizes: Sequence[int | None] = (None,)
    """for each encoder, the dimension of its input vectors, or None if its input is text"""

    model: bytes | None = None
    """the trained SentencePiece model, if the tokens are its subwords"""

    @property
    def vector_size(self) -> int | None:
        """Return F, the dimension of the vectors that a column names, or None if all columns are
        text."""
        return next(filter(None, self.vector_sizes), None)

    def tokenize(self, text: str) -> list[str]:
        """Return the tokens of one line. A blank line has no tokens. A subclass overrides this
        method or `tokenize_many`.

        Raises:
            UserError: a column is missing, or names a file that cannot be read.
        """
        return self.tokenize_many([text])[0]

    def tokenize_many(self, texts: Sequence[str]) -> list[list[str]]:
        """Return the tokens of each line. Some subclasses are faster than a call of `tokenize` per
        line."""
        return [self.tokenize(text) for text in texts]

    def forget(self) -> None:
        """Remove all text from memory that makes later calls faster."""
        return

    def columns(self, tokens: Sequence[str]) -> Sequence[Sequence[str]]:
        """Return the tokens of each column of a line."""
        return [tokens]

    def segments(self, tokens: Sequence[str], max_length: int) -> list[list[str]]:
        """Split the tokens of a line into segments with at most `max_length` tokens per column."""
        return split_tokens(tokens, max_length)

    def words(self, line: str, tokens: Sequence[str]) -> list[str]:
        """Return the words of a line, to which alignment links refer. Words are separated by spaces
        and tabs, and each vector is a word."""
        return words_of(line)

    def vector_positions(self, tokens: Sequence[str]) -> range:
        """Return the positions of vectors among the tokens of a line."""
        return range(0)

    def vectors(self, line: str, tokens: Sequence[str]) -> FloatArray:
        """Return the vectors of the tokens of a line, [S, F]. Tokens of text have zeros.

        Raises:
            UserError: the file has changed since it was tokenized.
            ValueError: all columns are text.
        """
        raise ValueError("a source without vectors")

    def settings(self) -> dict[str, Any]:
        """Return the kind of source (`name`) and the arguments from which `load_source` builds the
        object again."""
        return {"name": self.name}

    def save(self, directory: Path, side: str) -> None:
        """Write `<side>.tokenizer.json`, and the SentencePiece model if there is one, for
        `load_source`."""
        if self.model is not None:
            with atomic_path(directory / f"{side}.sentencepiece.model") as temporary:
                temporary.write_bytes(self.model)
        write_json(directory / f"{side}.tokenizer.json", self.settings())


class NoSource(Source):
    """Accept the blank source lines of a language model, and no other line."""

    name = "none"
    num_columns = 0

    def tokenize(self, text: str) -> list[str]:
        """Return no tokens. Raises UserError if the line is not blank."""
        if text.strip():
            raise UserError(
                "the run is a language model, which reads no source; name a run that translates"
            )
        return []


def split_tokens(tokens: Sequence[str], max_length: int) -> list[list[str]]:
    """Split tokens into segments of at most `max_length` tokens.

    A segment ends in the second half of these `max_length` tokens: after the last sentence end, or
    else before the last token that starts a word. Otherwise the segment has `max_length` tokens.
    """
    segments = []
    start = 0
    while len(tokens) - start > max_length:
        limit = start + max_length
        ends = range(limit, start + max_length // 2, -1)
        after_sentences = [end for end in ends if tokens[end - 1].endswith(_SENTENCE_ENDS)]
        before_words = [end for end in ends if tokens[end].startswith(SPACE)]
        candidates = [*after_sentences, *before_words, limit]
        stop = candidates[0]
        segments.append(list(tokens[start:stop]))
        start = stop
    return [*segments, list(tokens[start:])]
