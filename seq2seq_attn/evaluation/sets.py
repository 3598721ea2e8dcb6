"""Test sets: sentence pairs, and the languages that they are written in."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class GoldLinks:
    """Gold word alignments of sentence pairs, and the words that they are numbered in."""

    links: list[str]
    """one line per pair in Pharaoh format, `0-0 1-2`"""
    source_words: list[list[str]]
    target_words: list[list[str]]


@dataclass(frozen=True)
class EvaluationSet:
    """Sentence pairs to score on."""

    name: str
    source: list[str]
    references: list[str]
    gold: GoldLinks | None = None
    """None: the corpus has no word alignments"""
    num_concatenated: int = 1
    """number of pairs of the corpus that are concatenated into each pair"""
    is_file: bool = False
    """read from files that the user named, not from the corpus"""
    other_references: tuple[list[str], ...] = ()
    """further references of the same sentences; they count in scores"""


@dataclass(frozen=True)
class Languages:
    """The languages of the two sides, and the corpus they come from."""

    source: str = "de"
    target: str = "en"
    corpus: str = "files"


GERMAN_TO_ENGLISH = Languages()


def concatenated_name(name: str, num_concatenated: int) -> str:
    """The name of a set of concatenated pairs, `test.x3`."""
    return name if num_concatenated == 1 else f"{name}.x{num_concatenated}"
