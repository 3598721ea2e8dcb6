"""Sources for lines of several columns (`SeveralSources`) and for texts with marked sentences
(`SentenceSource`)."""

import reprlib
from collections.abc import Sequence
from itertools import zip_longest
from typing import Any

from seq2seq_attn.errors import UserError
from seq2seq_attn.text.links import words_of
from seq2seq_attn.text.marks import SOURCE_END, SPACE
from seq2seq_attn.text.tokenizers.source import Source, split_tokens
from seq2seq_attn.text.tokenizers.vectors import FloatArray, place_vectors

_ENDS_WITHOUT_SPACE = frozenset("。！？")
_ENDS = frozenset(".!?…") | _ENDS_WITHOUT_SPACE


class SeveralSources(Source):
    """Tokenize each column of a line by a `Source` and write `SOURCE_END` between the tokens of two
    columns.

    A blank column has no tokens. If all columns are blank, the line has no tokens and no
    `SOURCE_END`.
    """

    def __init__(self, languages: Sequence[str], sources: Sequence[Source]) -> None:
        """Store the language of each column and the `Source` that tokenizes the column. All columns
        of text use the same SentencePiece model if they use SentencePiece."""
        self.languages = list(languages)
        self.sources = list(sources)
        self.name = sources[0].name
        self.model = next(filter(None, (source.model for source in sources)), None)
        self.num_columns = len(sources)
        self.vector_sizes = [source.vector_size for source in sources]

    def tokenize(self, text: str) -> list[str]:
        return self.tokenize_many([text])[0]

    def tokenize_many(self, texts: Sequence[str]) -> list[list[str]]:
        lines = [self._split(text) for text in texts]
        by_column = []
        for number, source in enumerate(self.sources):
            by_column.append(source.tokenize_many([line[number] for line in lines]))
        return [join_columns(line) if any(line) else [] for line in zip(*by_column, strict=True)]

    def columns(self, tokens: Sequence[str]) -> list[list[str]]:
        columns: list[list[str]] = [[]]
        for token in tokens:
            if token == SOURCE_END:
                columns.append([])
            else:
                columns[-1].append(token)
        return columns

    def segments(self, tokens: Sequence[str], max_length: int) -> list[list[str]]:
        """Split a line into segments. If a column is longer than `max_length`, every column is
        split into the same number of slices of equal length, because no links tell which slices
        belong together."""
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
        if not tokens:
            return words_of(line)
        words = []
        columns = zip(self.sources, self._split(line), self.columns(tokens), strict=True)
        for source, text, column in columns:
            words += source.words(text, column)
        return words

    def vector_positions(self, sequence: Sequence[object], end: object = SOURCE_END) -> range:
        if self.vector_size is None or not sequence:
            return range(0)
        column = self.vector_sizes.index(self.vector_size)
        ends = [position for position, item in enumerate(sequence) if item == end]
        bounds = [-1, *ends, len(sequence)]
        return range(bounds[column] + 1, bounds[column + 1])

    def vectors(self, line: str, tokens: Sequence[str]) -> FloatArray:
        positions = self.vector_positions(tokens)
        column = self.vector_sizes.index(self.vector_size)
        names = tokens[positions.start : positions.stop]
        vectors = self.sources[column].vectors(self._split(line)[column], names)
        return place_vectors(vectors, positions, len(tokens))

    def settings(self) -> dict[str, Any]:
        columns = [source.settings() for source in self.sources]
        return {"name": "several", "languages": self.languages, "columns": columns}

    def _split(self, line: str) -> list[str]:
        """Return the columns of a line. Raises UserError if the line has more or fewer columns than
        sources."""
        if not line.strip():
            return [""] * self.num_columns
        columns = line.split("\t")
        if len(columns) != self.num_columns:
            texts = "text" if len(columns) == 1 else "texts"
            raise UserError(
                f"{reprlib.repr(line)}: {len(columns)} {texts}; expected {self.num_columns}, "
                f"separated by tabs: {', '.join(self.languages)}"
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
    and `?`. The marks allow attention over the sentences of a line.

    A dot inside a word, as in `3.5` or `z.B.`, ends no sentence, because spaCy makes one token of
    the word. The last sentence of a line is marked too, so that lines can be joined.
    """

    def __init__(self, text: Source) -> None:
        self.text = text
        self.name = text.name
        self.model = text.model
        self.vector_sizes = text.vector_sizes

    def forget(self) -> None:
        self.text.forget()

    def tokenize(self, text: str) -> list[str]:
        return mark_sentences(self.text.tokenize(text))

    def tokenize_many(self, texts: Sequence[str]) -> list[list[str]]:
        return [mark_sentences(tokens) for tokens in self.text.tokenize_many(texts)]

    def settings(self) -> dict[str, Any]:
        return {"name": "sentences", "text": self.text.settings()}


def mark_sentences(tokens: Sequence[str]) -> list[str]:
    """Return the tokens with `SOURCE_END` after each sentence."""
    marked = []
    has_spaces = any(SPACE in token for token in tokens)
    for token, following in zip_longest(tokens, tokens[1:], fillvalue=SPACE):
        marked.append(token)
        symbol = token.lstrip(SPACE)
        is_inside_a_word = (
            has_spaces and symbol not in _ENDS_WITHOUT_SPACE and following[0].isalnum()
        )
        if symbol in _ENDS and not is_inside_a_word:
            marked.append(SOURCE_END)
    return marked
