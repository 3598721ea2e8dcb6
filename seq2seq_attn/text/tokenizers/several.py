"""Sources for lines of several columns (`SeveralSources`) and for texts with marked sentences
(`SentenceSource`)."""

import reprlib
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from seq2seq_attn.errors import UserError
from seq2seq_attn.text.links import words_of
from seq2seq_attn.text.marks import SOURCE_END, SPACE
from seq2seq_attn.text.tokenizers.source import Source, split_tokens
from seq2seq_attn.text.tokenizers.vectors import FloatArray, place_vectors

_ENDS_WITHOUT_SPACE = frozenset("。！？")
"""marks that end a sentence even if no space follows"""
_ENDS = frozenset(".!?…") | _ENDS_WITHOUT_SPACE


class SeveralSources(Source):
    """Tokenize each column of a line by a `Source` of its own, and put `SOURCE_END` between the
    tokens of two columns.

    A blank column has no tokens. If all columns are blank, the line has no tokens and no
    `SOURCE_END`. At most one column names files of vectors.
    """

    def __init__(self, languages: Sequence[str], sources: Sequence[Source]) -> None:
        """Store the language of each column and the `Source` that tokenizes the column. If columns
        are split by SentencePiece, they use the same model."""
        self.languages = list(languages)
        self.sources = list(sources)
        self.name = sources[0].name
        self.model = next((source.model for source in sources if source.model), None)
        self.num_columns = len(sources)
        self.vector_sizes = [source.vector_size for source in sources]
        # The column that names files of vectors; the first one if all columns are text.
        self._vector_column = self.vector_sizes.index(self.vector_size)

    def tokenize_many(self, texts: Sequence[str]) -> list[list[str]]:
        lines = [self._split(text) for text in texts]
        by_column = []
        for number, source in enumerate(self.sources):
            by_column.append(source.tokenize_many([line[number] for line in lines]))
        by_line = []
        for columns in zip(*by_column, strict=True):
            by_line.append(join_columns(columns) if any(columns) else [])
        return by_line

    def columns(self, tokens: Sequence[str]) -> list[list[str]]:
        columns: list[list[str]] = [[]]
        for token in tokens:
            if token == SOURCE_END:
                columns.append([])
            else:
                columns[-1].append(token)
        return columns

    def segments(self, tokens: Sequence[str], max_length: int) -> list[list[str]]:
        """Split a line into segments with at most `max_length` tokens per column.

        Every column is cut into one slice per segment. The slices of a column have equal lengths,
        because nothing tells which tokens of two columns belong together.
        """
        columns = self.columns(tokens)
        num_segments = max(len(split_tokens(column, max_length)) for column in columns)
        segments = []
        for k in range(num_segments):
            slices = []
            for column in columns:
                start = k * len(column) // num_segments
                stop = (k + 1) * len(column) // num_segments
                slices.append(column[start:stop])
            segments.append(join_columns(slices))
        return segments

    def words(self, line: str, tokens: Sequence[str]) -> list[str]:
        if not tokens:  # no `SOURCE_END` separates blank columns
            return words_of(line)
        words = []
        columns = zip(self.sources, self._split(line), self.columns(tokens), strict=True)
        for source, text, column in columns:
            words += source.words(text, column)
        return words

    def vector_positions(self, tokens: Sequence[str]) -> range:
        if self.vector_size is None or not tokens:
            return range(0)
        ends = [position for position, token in enumerate(tokens) if token == SOURCE_END]
        bounds = [-1, *ends, len(tokens)]
        return range(bounds[self._vector_column] + 1, bounds[self._vector_column + 1])

    def vectors(self, line: str, tokens: Sequence[str]) -> FloatArray:
        positions = self.vector_positions(tokens)
        file = self._split(line)[self._vector_column]
        file_tokens = tokens[positions.start : positions.stop]
        vectors = self.sources[self._vector_column].vectors(file, file_tokens)
        return place_vectors(vectors, positions, len(tokens))

    def settings(self) -> dict[str, Any]:
        columns = [source.settings() for source in self.sources]
        return {"name": "several", "languages": self.languages, "columns": columns}

    def _split(self, line: str) -> list[str]:
        """Return the columns of a line. All columns of a blank line are empty. Raises UserError if
        the line does not have `num_columns` columns."""
        if not line.strip():
            return [""] * self.num_columns
        columns = line.split("\t")
        if len(columns) != self.num_columns:
            raise UserError(
                f"{reprlib.repr(line)}: expected texts in {', '.join(self.languages)}, separated "
                f"by tabs: {self.num_columns} texts, not {len(columns)}"
            )
        return columns


def join_columns(columns: Sequence[Sequence[str]]) -> list[str]:
    """Join the tokens of columns to a line, with `SOURCE_END` between two columns."""
    line = []
    for column in columns:
        line += [*column, SOURCE_END]
    return line[:-1]


class SentenceSource(Source):
    """Tokenize a text and add `SOURCE_END` after each token that ends a sentence, such as `.`, `!`
    or `?`. Attention over sentences needs to know where each sentence ends.

    `SOURCE_END` follows the last sentence of a line too, so that lines can be joined.
    """

    def __init__(self, text: Source) -> None:
        self.text = text
        self.name = text.name
        self.model = text.model

    def forget(self) -> None:
        self.text.forget()

    def tokenize_many(self, texts: Sequence[str]) -> list[list[str]]:
        return [mark_sentences(tokens) for tokens in self.text.tokenize_many(texts)]

    def settings(self) -> dict[str, Any]:
        return {"name": "sentences", "text": self.text.settings()}


def mark_sentences(tokens: Sequence[str]) -> list[str]:
    """Return the tokens with `SOURCE_END` after each sentence.

    The dot of `3.5` or `z.B.` ends no sentence. Among tokens of spaCy, the word is a single token.
    Among subwords and characters, the dot is a token that no `SPACE` follows.
    """
    marked = []
    marks_spaces = any(SPACE in token for token in tokens)
    # A space follows the last token.
    for token, following in pairwise([*tokens, SPACE]):
        marked.append(token)
        mark = token.lstrip(SPACE)
        if mark not in _ENDS:
            continue
        may_be_in_word = marks_spaces and mark not in _ENDS_WITHOUT_SPACE
        if not (may_be_in_word and following[0].isalnum()):
            marked.append(SOURCE_END)
    return marked
