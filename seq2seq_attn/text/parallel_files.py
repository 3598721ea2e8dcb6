"""The files of parallel text: one per source and one for the target, or one table (TSV or JSON lines).

Each file may be gzipped.
"""

from __future__ import annotations

import json
import logging
import re
import reprlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from seq2seq_attn.errors import UsageError, UserError
from seq2seq_attn.text.corpus import count_pairs, iter_lines
from seq2seq_attn.text.languages import CODE
from seq2seq_attn.text.normalize import one_line
from seq2seq_attn.text.tokenizers.base import SOURCE_END

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class TwoFiles:
    """Line i of one file translates line i of the other."""

    source: Path
    target: Path

    @property
    def paths(self) -> tuple[Path, ...]:
        """The files with the text."""
        return self.source, self.target

    def pairs(self) -> Iterator[tuple[str, str]]:
        """Source and target of each pair.

        Raises:
            UserError: a file is not UTF-8, or the numbers of lines differ.
        """
        count_pairs(self.source, self.target)
        return zip(iter_lines(self.source), iter_lines(self.target), strict=True)


@dataclass(frozen=True)
class SeveralFiles:
    """Line i of the target translates line i of each source."""

    sources: tuple[Path, ...]
    target: Path

    @property
    def paths(self) -> tuple[Path, ...]:
        """The files with the text."""
        return *self.sources, self.target

    def pairs(self) -> Iterator[tuple[str, str]]:
        """The sources, joined by tabs, and the target of each pair.

        Raises:
            UserError: a file is not UTF-8, or the numbers of lines differ.
        """
        for source in self.sources:
            count_pairs(source, self.target)
        for *sources, target in zip(*map(iter_lines, self.paths), strict=True):
            yield SOURCE_END.join(map(one_line, sources)), target


@dataclass(frozen=True)
class Table:
    """One file with all sides: a column for each per line, or a JSON object per line with a text per language."""

    path: Path
    source_languages: tuple[str, ...]
    target_language: str

    @property
    def languages(self) -> tuple[str, ...]:
        """Those of the sources, then that of the target."""
        return *self.source_languages, self.target_language

    @property
    def paths(self) -> tuple[Path, ...]:
        """The file with the text."""
        return (self.path,)

    def pairs(self) -> Iterator[tuple[str, str]]:
        """Source and target of each pair.

        Raises:
            UsageError: the first line of a TSV names other languages.
            UserError: a line is not a sentence pair.
        """
        return self._json_pairs() if self.kind == "jsonl" else self._tab_pairs()

    @property
    def kind(self) -> str:
        """`tsv` or `jsonl`."""
        return "jsonl" if is_json(self.path) else "tsv"

    def header(self) -> list[str] | None:
        """The languages of a TSV's columns, as its first line names them; None: it has no such line, or is not a TSV.

        Raises:
            UsageError: the first line names other languages.
        """
        columns = header_of(next(iter_lines(self.path), "").split("\t"))
        return None if self.kind == "jsonl" or self._order_of_header(columns) is None else columns

    def warn_of_header(self) -> None:
        """Warn if the first line, which is read as text, may be a header: all its columns are single words."""
        columns = next(iter_lines(self.path), "").split("\t")
        if all(re.fullmatch(r"[#\w-]+", column.strip()) for column in columns):
            shown = ", ".join(columns)
            log.warning("%s: its first line (%s) is read as text; if it is a header, remove it", self.path, shown)

    def _tab_pairs(self) -> Iterator[tuple[str, str]]:
        size = len(self.languages)
        order = [*range(size)]
        for number, line in enumerate(iter_lines(self.path), 1):
            columns = line.split("\t") if line.strip() else [""] * size
            if len(columns) != size:
                raise UserError(_wrong_columns(self.path, number, line, size))
            if number == 1 and (named := self._order_of_header(header_of(columns))) is not None:
                order = named
            else:
                *sources, target = (columns[index] for index in order)
                yield SOURCE_END.join(sources), target

    def _order_of_header(self, header: Sequence[str]) -> list[int] | None:
        """The column of each language; None if the first line is not a header. Raises UsageError if it is one of other
        languages."""
        header = self._codes_of(header)
        if header == [*self.languages]:
            return [*range(len(header))]
        if set(header) == set(self.languages) and len(set(header)) == len(header):
            return [header.index(language) for language in self.languages]
        if all(map(CODE.fullmatch, (*header, *self.languages))):
            found, languages = ", ".join(header), ", ".join(self.languages)
            raise UsageError(
                f"{self.path}: its first line names the languages {found}, not {languages}; name those with "
                f"--source-language and --target-language, or, if that line is text, put a header of {languages} first"
            )
        return None

    def _codes_of(self, header: Sequence[str]) -> list[str]:
        """The codes of a header that names the columns in words (`source`, `target`, `German`); any other line as it
        is."""
        words = [column.lower() for column in header]
        if not all(word.isalpha() and len(word) > 2 for word in words):
            return [*header]
        from seq2seq_attn.text.tokenizers.spacy import english_name  # spaCy takes a second to import

        named = {english_name(language): language for language in self.languages} | self._roles
        return [named[word] for word in words] if all(word in named for word in words) else [*header]

    @property
    def _roles(self) -> dict[str, str]:
        """The language of a column or key named after its side: `source`, `tgt`; empty with several sources."""
        if len(self.languages) > 2:
            return {}
        source, target = self.languages
        return {"source": source, "src": source, "target": target, "tgt": target, "trg": target}

    def _json_pairs(self) -> Iterator[tuple[str, str]]:
        for number, line in enumerate(iter_lines(self.path), 1):
            texts = json_texts(self.path, number, line) if line.strip() else dict.fromkeys(self.languages, "")
            if not texts.keys() & set(self.languages):
                texts = {self._roles.get(key, key): text for key, text in texts.items()}
            for language in self.languages:
                if language not in texts:
                    raise UserError(
                        f"{self.path}, line {number}: no text for {language!r}; its keys with text are "
                        f"{', '.join(texts) or 'none'}: name two with --source-language and --target-language"
                    )
            *sources, target = (one_line(texts[language]) for language in self.languages)
            yield SOURCE_END.join(sources), target


Text = TwoFiles | SeveralFiles | Table


def is_json(path: Path) -> bool:
    return path.name.removesuffix(".gz").endswith(".jsonl")


def header_of(columns: Sequence[str]) -> list[str]:
    """The columns of a first line, with codes of two letters in lower case."""
    header = [column.strip().strip("\ufeff") for column in columns]
    return [column.lower() if len(column) == 2 else column for column in header]


def json_texts(path: Path, number: int, line: str) -> dict[str, str]:
    """The strings of a JSON object, or of its `translation` object."""
    try:
        value: Any = json.loads(line.strip("\ufeff"))
    except (ValueError, RecursionError):
        raise UserError(f"{path}, line {number}: not a JSON object; expected one per line") from None
    if isinstance(value, dict) and isinstance(value.get("translation"), dict):
        value = value["translation"]
    if not isinstance(value, dict):
        raise UserError(f'{path}, line {number}: expected an object such as {{"en": "...", "fr": "..."}}')
    return {key: text for key, text in value.items() if isinstance(text, str)}


def ends_in_cr(path: Path) -> str:
    """The advice for a file whose lines end in CR alone."""
    convert = f"zcat {path} | tr '\\r' '\\n'" if path.suffix == ".gz" else f"tr '\\r' '\\n' < {path}"
    return f"lines end in CR alone, as on old Macs; convert them: {convert} > new.{path.name.removesuffix('.gz')}"


def _wrong_columns(path: Path, number: int, line: str, expected: int) -> str:
    num_columns = line.count("\t") + 1
    is_gzipped = path.suffix == ".gz"
    if "\r" in line:
        return f"{path}, line {number}: {ends_in_cr(path)}"
    if expected > 2:
        return f"{path}, line {number}: {num_columns} columns, expected {expected}: {expected - 1} sources and a target"
    if num_columns < 2:
        return f"{path}, line {number}: no tab; expected source, tab, target"
    where = f"{path}, line {number}: {num_columns} columns"
    if number > 1:
        return f"{where}, but two in the lines before; remove the stray tab in {reprlib.repr(line)}"
    cut = f"zcat {path} | cut -f2,3" if is_gzipped else f"cut -f2,3 {path}"
    return f"{where}, expected two; choose source and target by their numbers, for example {cut} > two.tsv"
