"""What every tokenizer does to a line first, so that anything at all may come in."""

from __future__ import annotations

import re
import unicodedata

# Line and paragraph separators, tabs, NUL and the like: none of them is text.
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")
# Lone surrogates cannot be written as UTF-8, so neither spaCy nor SentencePiece takes them.
_SURROGATE = re.compile(r"[\ud800-\udfff]")
# Marks with no width and no meaning to a translation: soft hyphen, zero-width space, direction marks, byte-order mark.
_INVISIBLE = re.compile(r"[\u00ad\u200b\u200e\u200f\u202a-\u202e\u2060\u2066-\u2069\ufeff]")

_MOST_MARKS = 30
"""Combining marks kept in a row: the limit of Unicode's stream-safe text (UAX 15). The time of CPython's NFC grows with
the square of their number; 64,000 took 4 s."""
# A run that may hold more: decomposed, a letter has at most three marks and a mark at most two.
_MAYBE_MARKS = re.compile(r"\w?[^\w\s]{14,}")


def normalize(text: str, *, lowercase: bool = False) -> str:
    """One line as tokenizers see it: NFC, single plain spaces, no control characters, at most 30 combining marks in a
    row, optionally lower-cased."""
    if not text.isprintable():
        text = _SURROGATE.sub("\ufffd", _INVISIBLE.sub("", _CONTROL.sub(" ", text)))
    if lowercase:
        text = text.lower()
    return " ".join(unicodedata.normalize("NFC", _MAYBE_MARKS.sub(_cap_marks, text)).split())


def _cap_marks(run: re.Match[str]) -> str:
    kept: list[str] = []
    num_marks = 0
    for character in run[0]:
        for part in unicodedata.normalize("NFD", character):
            num_marks = num_marks + 1 if unicodedata.combining(part) else 0
            if num_marks <= _MOST_MARKS:
                kept.append(part)
    return "".join(kept)


def one_line(text: str) -> str:
    """The text with nothing in it that any reader takes for the end of a line."""
    return text if text.isprintable() else _SURROGATE.sub("\ufffd", _CONTROL.sub(" ", text))
