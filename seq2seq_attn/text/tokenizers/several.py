"""Tokenizers that mark parts of a line: several sources, or the sentences of one."""

import logging
import reprlib
from collections.abc import Sequence
from itertools import chain, zip_longest
from pathlib import Path

from seq2seq_attn.errors import UserError
from seq2seq_attn.files import write_json
from seq2seq_attn.text.links import words_of
from seq2seq_attn.text.tokenizers.base import SOURCE_END, SPACE, Tokenizer
from seq2seq_attn.text.tokenizers.vectors import VectorsTokenizer

log = logging.getLogger(__name__)

SEVERAL, SENTENCES = "several", "sentences"
"""the names in saved settings"""
_ENDS_WITHOUT_SPACE = frozenset("。！？")
_ENDS = frozenset(".!?…") | _ENDS_WITHOUT_SPACE


class SeveralTokenizer(Tokenizer):
    """Each source's tokens by its own tokenizer, `SOURCE_END` between the sources. As text, tabs
    separate them.

    A blank source has no tokens. A line whose sources are all blank has none at all.
    """

    def __init__(self, languages: Sequence[str], parts: Sequence[Tokenizer]) -> None:
        """Take the languages of the sources, and the tokenizer of each."""
        super().__init__()
        self.languages = list(languages)
        self.parts = list(parts)
        self.name = parts[0].name

    def tokenize(self, text: str) -> list[str]:
        """The tokens of all sources of one line. Raises UserError: the line does not have one text
        per source."""
        return self.tokenize_many([text])[0]

    def tokenize_many(self, texts: Sequence[str]) -> list[list[str]]:
        columns = zip(*map(self._columns, texts), strict=True)
        by_source = [
            part.tokenize_many(column) for part, column in zip(self.parts, columns, strict=False)
        ]
        return [
            join_sources(sources) if any(sources) else []
            for sources in zip(*by_source, strict=True)
        ]

    def detokenize(self, tokens: Sequence[str]) -> str:
        sources = zip(self.parts, split_sources(tokens), strict=False)
        return SOURCE_END.join(part.detokenize(source) for part, source in sources)

    def save(self, directory: Path, side: str) -> None:
        """Write `<side>.tokenizer.json`, and each tokenizer as that of `<side>.<language>`; equal
        ones once."""
        first = {
            id(part): language
            for language, part in reversed([*zip(self.languages, self.parts, strict=True)])
        }
        names = [f"{side}.{first[id(part)]}" for part in self.parts]
        for name, part in dict(zip(names, self.parts, strict=True)).items():
            part.save(directory, name)
        write_json(
            directory / f"{side}.tokenizer.json",
            {"name": SEVERAL, "languages": self.languages, "parts": names},
        )

    def _columns(self, text: str) -> list[str]:
        columns = text.split(SOURCE_END)
        if not text.strip():
            return [""] * len(self.parts)
        if len(columns) != len(self.parts):
            raise UserError(
                f"{reprlib.repr(text)}: {len(columns)} {'text' if len(columns) == 1 else 'texts'}; "
                f"expected {len(self.parts)}, separated by tabs: {', '.join(self.languages)}"
            )
        return columns


class SentenceTokenizer(Tokenizer):
    """Another tokenizer's tokens, with `SOURCE_END` after each token that ends a sentence: `.`,
    `!`, `?` and the like, for attention over the sentences of a line. A dot inside a word, as in
    `3.5` or `z.B.`, ends no sentence; spaCy keeps such words whole.

    If a line ends with such a token, its last sentence has a mark too, so that joined lines keep
    their boundary.
    """

    def __init__(self, tokenizer: Tokenizer) -> None:
        super().__init__()
        self.tokenizer = tokenizer
        self.name = tokenizer.name

    def tokenize(self, text: str) -> list[str]:
        return _with_ends(self.tokenizer.tokenize(text))

    def tokenize_many(self, texts: Sequence[str]) -> list[list[str]]:
        return [_with_ends(tokens) for tokens in self.tokenizer.tokenize_many(texts)]

    def detokenize(self, tokens: Sequence[str]) -> str:
        return self.tokenizer.detokenize([token for token in tokens if token != SOURCE_END])

    def save(self, directory: Path, side: str) -> None:
        """Write `<side>.tokenizer.json`, and the other tokenizer as that of `<side>.text`."""
        self.tokenizer.save(directory, f"{side}.text")
        write_json(
            directory / f"{side}.tokenizer.json", {"name": SENTENCES, "parts": [f"{side}.text"]}
        )


def _with_ends(tokens: Sequence[str]) -> list[str]:
    marked = []
    has_spaces = any(SPACE in token for token in tokens)
    for token, following in zip_longest(tokens, tokens[1:], fillvalue=SPACE):
        marked.append(token)
        end = token.lstrip(SPACE)
        is_inside_a_word = has_spaces and end not in _ENDS_WITHOUT_SPACE and following[0].isalnum()
        if end in _ENDS and not is_inside_a_word:
            marked.append(SOURCE_END)
    return marked


def num_sources(tokenizer: Tokenizer) -> int:
    """The number of texts in a line, separated by tabs."""
    return len(tokenizer.parts) if isinstance(tokenizer, SeveralTokenizer) else 1


def vector_sizes(tokenizer: Tokenizer) -> list[int | None]:
    """The dimension of each source's vectors; None for text."""
    parts = tokenizer.parts if isinstance(tokenizer, SeveralTokenizer) else [tokenizer]
    return [part.size if isinstance(part, VectorsTokenizer) else None for part in parts]


def find_vector_source(tokenizer: Tokenizer) -> tuple[int, int] | None:
    """The number of the source that is of vectors, from 0, and the dimension of its vectors; None:
    all are texts."""
    return next(
        ((number, size) for number, size in enumerate(vector_sizes(tokenizer)) if size is not None),
        None,
    )


def vector_positions(tokens: Sequence[str], tokenizer: Tokenizer) -> range:
    """The positions of vectors among the source tokens of a line."""
    source = find_vector_source(tokenizer)
    if source is None or not tokens:
        return range(0)
    ends = [
        -1,
        *(position for position, token in enumerate(tokens) if token == SOURCE_END),
        len(tokens),
    ]
    return range(ends[source[0]] + 1, ends[source[0] + 1])


def source_words(line: str, tokens: Sequence[str], tokenizer: Tokenizer) -> list[str]:
    """The words of a source line with these tokens: words split at spaces and tabs, and each
    vector."""
    source = find_vector_source(tokenizer)
    if source is None or not tokens:
        return words_of(line)
    words = [*map(words_of, line.split(SOURCE_END))]
    words[source[0]] = [tokens[position] for position in vector_positions(tokens, tokenizer)]
    return [*chain.from_iterable(words)]


def warn_about_tabs(where: str, num_lines: int) -> None:
    """Warn of lines with tabs in an input of a run with one source. `where`: `FILE: `, or empty."""
    if num_lines:
        log.warning(
            "%stabs, on %d lines, count as spaces; this run reads one source", where, num_lines
        )


def join_sources(sources: Sequence[Sequence[str]]) -> list[str]:
    """The tokens of a line from those of its sources."""
    first, *rest = sources
    return [*first, *chain.from_iterable((SOURCE_END, *source) for source in rest)]


def split_sources(tokens: Sequence[str]) -> list[list[str]]:
    """The tokens of each source of a line; of a line with one source, all."""
    sources: list[list[str]] = [[]]
    for token in tokens:
        if token == SOURCE_END:
            sources.append([])
        else:
            sources[-1].append(token)
    return sources
