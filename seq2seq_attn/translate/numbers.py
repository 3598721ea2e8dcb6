"""Compare the numbers of a line with the numbers of its translation.

Only the digits count, because languages differ in separators: `1.500,25` is `1,500.25`.
"""

import re
from collections import Counter
from collections.abc import Container, Sequence

from seq2seq_attn.text.known_words import replace_words

_NUMBER = re.compile(r"(?:\d{1,3}(?:[ \u00a0\u202f]\d{3})+(?!\d)|\d+)(?:[.,:'’]\d+)*")
"""matches digits, and single separators between them; a space must precede three digits"""
_OFTEN_SPELLED = frozenset(map(str, range(13)))
"""Translations often spell numbers up to 12 as words."""


def find_numbers(text: str, ignored: Container[str]) -> list[str]:
    """Return the numbers of a text, without those in the words in `ignored`."""
    rest = replace_words(text, lambda word: " " if word in ignored else None)
    return _NUMBER.findall(rest)


def compare_numbers(numbers: Sequence[str], translated: Sequence[str]) -> list[str]:
    """Return a warning if a number of a line is not among the numbers of its translation. Extra
    numbers alone have no warning, because they may translate words."""
    missing = _subtract(numbers, translated)
    extra = _subtract(translated, numbers)
    if not extra:
        missing = [number for number in missing if _digits(number) not in _OFTEN_SPELLED]
    if not missing:
        return []
    replacement = f" and has {', '.join(extra)} instead" if extra else ""
    return [f"The translation lacks {', '.join(missing)}{replacement}."]


def _subtract(numbers: Sequence[str], others: Sequence[str]) -> list[str]:
    """Return the numbers that have no number with the same digits in `others`."""
    counts = Counter(map(_digits, others))
    rest = []
    for number in numbers:
        digits = _digits(number)
        if counts[digits]:
            counts[digits] -= 1
        else:
            rest.append(number)
    return rest


def _digits(number: str) -> str:
    """Return the digits of a number in ASCII, without zeros at the start."""
    digits = "".join(str(int(character)) for character in number if character.isdecimal())
    return digits.lstrip("0") or "0"
