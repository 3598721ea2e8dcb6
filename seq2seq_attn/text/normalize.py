"""What every tokeniser does to a line first, so that anything at all may come in."""

from __future__ import annotations

import re
import unicodedata

# Line and paragraph separators, tabs, NUL and the like: none of them is text.
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")
# Lone surrogates cannot be written as UTF-8, so neither spaCy nor SentencePiece takes them.
_SURROGATE = re.compile(r"[\ud800-\udfff]")
# Marks with no width and no meaning to a translation: soft hyphen, zero-width space, direction marks, byte-order mark.
_INVISIBLE = re.compile(r"[\u00ad\u200b\u200e\u200f\u202a-\u202e\u2060\u2066-\u2069\ufeff]")


def normalize(text: str, *, lowercase: bool = False) -> str:
    """One line as tokenisers see it: NFC, single plain spaces, no control characters, optionally lower-cased."""
    if not text.isprintable():
        text = _SURROGATE.sub("\ufffd", _INVISIBLE.sub("", _CONTROL.sub(" ", text)))
    if lowercase:
        text = text.lower()
    return " ".join(unicodedata.normalize("NFC", text).split())


def one_line(text: str) -> str:
    """The text with nothing in it that any reader takes for the end of a line."""
    return text if text.isprintable() else _SURROGATE.sub("\ufffd", _CONTROL.sub(" ", text))
