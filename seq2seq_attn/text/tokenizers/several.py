"""The tokenizer of several sources: a line holds a text per source, separated by tabs."""

from __future__ import annotations

import logging
import reprlib
from collections.abc import Sequence
from itertools import chain
from pathlib import Path

from seq2seq_attn.errors import UserError
from seq2seq_attn.files import write_json
from seq2seq_attn.text.links import words_of
from seq2seq_attn.text.tokenizers.base import SOURCE_END, Tokenizer
from seq2seq_attn.text.tokenizers.vectors import VectorsTokenizer, has_vectors

log = logging.getLogger(__name__)

SEVERAL = "several"
"""the name in saved settings"""


class SeveralTokenizer:
    """Each source's tokens by its own tokenizer, `SOURCE_END` between the sources.

    A blank source has no tokens. A line whose sources are all blank has none at all.
    """

    def __init__(self, languages: Sequence[str], parts: Sequence[Tokenizer]) -> None:
        """Take the languages of the sources, and the tokenizer of each."""
        self.languages = list(languages)
        self.parts = list(parts)
        self.name = parts[0].name

    def tokenize(self, text: str) -> list[str]:
        """The tokens of all sources of one line.

        Raises:
            UserError: the line does not have one text per source.
        """
        return self.tokenize_many([text])[0]

    def tokenize_many(self, texts: Sequence[str]) -> list[list[str]]:
        """`tokenize` for each line, faster."""
        lines = [self._columns(text) for text in texts]
        of_sources = [part.tokenize_many([line[number] for line in lines]) for number, part in enumerate(self.parts)]
        return [join_sources(sources) if any(sources) else [] for sources in zip(*of_sources, strict=True)]

    def detokenize(self, tokens: Sequence[str]) -> str:
        """The line that has these tokens."""
        return SOURCE_END.join(
            part.detokenize(source) for part, source in zip(self.parts, split_sources(tokens), strict=False)
        )

    def save(self, directory: Path, side: str) -> None:
        """Write `<side>.tokenizer.json`, and each tokenizer as that of `<side>.<language>`; equal ones once."""
        first = {id(part): language for language, part in reversed([*zip(self.languages, self.parts, strict=True)])}
        names = [f"{side}.{first[id(part)]}" for part in self.parts]
        for name, part in dict(zip(names, self.parts, strict=True)).items():
            part.save(directory, name)
        write_json(directory / f"{side}.tokenizer.json", {"name": SEVERAL, "languages": self.languages, "parts": names})

    def _columns(self, text: str) -> list[str]:
        columns = text.split(SOURCE_END)
        if not text.strip():
            return [""] * len(self.parts)
        if len(columns) != len(self.parts):
            raise UserError(
                f"{reprlib.repr(text)}: {len(columns)} {'text' if len(columns) == 1 else 'texts'}; expected "
                f"{len(self.parts)}, separated by tabs: {', '.join(self.languages)}"
            )
        return columns


def num_sources(tokenizer: Tokenizer) -> int:
    """The number of texts in a line, separated by tabs."""
    return len(tokenizer.parts) if isinstance(tokenizer, SeveralTokenizer) else 1


def vector_sizes(tokenizer: Tokenizer) -> list[int | None]:
    """The dimension of each source's vectors; None for text."""
    parts = tokenizer.parts if isinstance(tokenizer, SeveralTokenizer) else [tokenizer]
    return [part.size if isinstance(part, VectorsTokenizer) else None for part in parts]


def warn_about_tabs(name: str | None, num_lines: int) -> None:
    """Warn of lines with tabs in an input (None: in texts) of a run with one source."""
    if num_lines:
        lines = "1 line holds" if num_lines == 1 else f"{num_lines:,} lines hold"
        prefix = "" if name is None else f"{name}: "
        log.warning("%s%s tabs, which count as spaces; this run reads one source", prefix, lines)


def source_words(line: str, tokens: Sequence[str]) -> list[str]:
    """The words of a source line with these tokens: words split at spaces and tabs, and each vector."""
    if not has_vectors(tokens):
        return words_of(line)
    columns = zip(line.split(SOURCE_END), split_sources(tokens), strict=False)
    return [word for text, source in columns for word in (source if has_vectors(source) else words_of(text))]


def join_sources(sources: Sequence[Sequence[str]]) -> list[str]:
    """The tokens of a line from those of its sources."""
    first, *others = sources
    return [*first, *chain.from_iterable((SOURCE_END, *source) for source in others)]


def split_sources(tokens: Sequence[str]) -> list[list[str]]:
    """The tokens of each source of a line; of a line with one source, all."""
    sources: list[list[str]] = [[]]
    for token in tokens:
        if token == SOURCE_END:
            sources.append([])
        else:
            sources[-1].append(token)
    return sources
