"""A line and its unknown words, and the warnings of a translation that lacks some of them."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from seq2seq_attn.text.known_words import StandIn, kind_of, replace_words, words_in
from seq2seq_attn.text.marks import SPACE
from seq2seq_attn.translate.numbers import compare_numbers, find_numbers
from seq2seq_attn.translate.translation import Translation, name_unknown


class Version(NamedTuple):
    """The sentences that the model reads in place of a line. A stand-in never splits a sentence."""

    sentences: Sequence[str]
    stand_ins: Mapping[str, StandIn]
    """the stand-in of each unknown word"""


class Line(NamedTuple):
    """A line and its unknown words."""

    text: str
    unknown: Sequence[str]
    """the distinct unknown words, in order"""
    passed: Sequence[str]
    """the unknown words that stay as they are"""
    versions: Sequence[Version]
    """the sentences that the model reads; none if the whole line stays as it is"""
    notes: Sequence[str]
    """warnings of words that are read in another case"""
    numbers: Sequence[str] = ()
    """the numbers that the translation should have"""


def mark_unknown(line: Line, translation: Translation, keep_attention: bool) -> Translation:
    """Return a translation of the line that names the unknown words, and the unknown tokens that
    belong to no word, with warnings of words and numbers that are lost."""
    unknown = list(line.unknown)
    rest = replace_words(line.text, lambda word: " " if word in line.unknown else None)
    for token in name_unknown(translation).unknown:
        if token in rest and token not in unknown:
            unknown.append(token)
    positions = set(translation.unknown_positions)
    for position, token in enumerate(translation.source_tokens):
        if token.removeprefix(SPACE) in line.unknown:
            positions.add(position)
    warnings = [*translation.warnings, *line.notes]
    warnings += _describe_losses(line, translation.text)
    return replace(
        translation,
        unknown=tuple(unknown),
        unknown_positions=tuple(sorted(positions)),
        warnings=tuple(warnings),
        attention=translation.attention if keep_attention else None,
    )


def _describe_losses(line: Line, text: str) -> list[str]:
    """Return warnings of words that a translation lacks or repeats, and of changed numbers."""
    warnings: list[str] = []
    if not line.passed and not line.numbers:
        return warnings
    counts = Counter(words_in(line.text))
    written = Counter(words_in(text))
    for word in line.passed:
        if written[word] > counts[word]:
            warnings.append(f"{word} is more often in the translation than in the text.")
        elif not written[word] and word not in line.numbers:
            warnings.append(f"{word} is unknown to the model and missing in the translation.")
    translated = find_numbers(text, codes_in(line.passed))
    return warnings + compare_numbers(line.numbers, translated)


def codes_in(passed: Sequence[str]) -> list[str]:
    """Return the unknown words that are no numbers; their digits are no numbers either."""
    return [word for word in passed if kind_of(word) != "number"]
