"""Read glossaries, and find their terms in text.

A glossary is a list of source terms, each with the target term that a translation must contain. A
term has one word or several words. A file has one entry per line: source, tab, target.
"""

import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import NamedTuple, TypeVar

from seq2seq_attn.errors import UserError
from seq2seq_attn.text.languages import separates_words
from seq2seq_attn.text.lines import read_lines
from seq2seq_attn.text.normalize import normalize

TermT = TypeVar("TermT")
Words = tuple[str, ...]


class Entry(NamedTuple):
    """A source term and its target term."""

    where: str
    """the file and the line of the entry, for errors"""
    source: str
    target: str


Glossary = tuple[Entry, ...]


def read_glossary(path: str | Path) -> Glossary:
    """Return the entries of a file. Raises UserError for the causes that `read_lines` and
    `parse_glossary` list."""
    return parse_glossary(str(path), read_lines(Path(path)))


def parse_glossary(name: str, lines: Iterable[str]) -> Glossary:
    """Return the entries of the lines of a glossary. Blank lines are skipped.

    Raises:
        UserError: a line is not a source term and a target term, or there is no entry.
    """
    entries = []
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        terms = [normalize(cell) for cell in line.split("\t")]
        if len(terms) != 2 or not all(terms):
            raise UserError(
                f"{name}, line {number}: expected a source term, a tab and a target term"
            )
        entries.append(Entry(f"{name}, line {number}", *terms))
    if not entries:
        raise UserError(f"{name}: no terms; expected lines of a source term, a tab, a target term")
    return tuple(entries)


def split_terms(text: str, language: str) -> Words:
    """Return the words and symbols of a text, by which terms are compared.

    A word is a sequence of letters, digits and combining marks. In a language that does not
    separate words, each character outside ASCII is a word.
    """

    def is_part(character: str) -> bool:
        is_letter = unicodedata.category(character)[0] in "LMN"
        return is_letter and (character.isascii() or separates_words(language))

    words = []
    for is_word, characters in groupby(text, is_part):
        if is_word:
            words.append("".join(characters))
        else:
            words += [character for character in characters if not character.isspace()]
    return tuple(words)


def find_terms(words: Sequence[str], terms: Mapping[Words, TermT]) -> list[TermT]:
    """Return the distinct values of the terms that occur in `words`.

    Of overlapping terms, only the longest is found; of those of equal length, only the first.
    """
    longest = max(map(len, terms))
    taken: set[int] = set()
    found = {}
    for length in range(longest, 0, -1):
        for start in range(len(words) - length + 1):
            positions = range(start, start + length)
            term = tuple(words[start : start + length])
            if term in terms and taken.isdisjoint(positions):
                taken.update(positions)
                found[start] = terms[term]
    return list(dict.fromkeys(map(found.__getitem__, sorted(found))))
