"""Normalize a line before tokenization. Any string is accepted."""

import re
import unicodedata

# Line and paragraph separators, tabs, NUL and other control characters; zero-width spaces, as
# between words in Khmer.
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u200b\u2028\u2029]")
# Lone surrogates cannot be encoded as UTF-8, so spaCy and SentencePiece reject them.
_SURROGATE = re.compile(r"[\ud800-\udfff]")
# Invisible characters without meaning: soft hyphen, direction marks, word joiner, byte-order mark.
_INVISIBLE = re.compile(r"[\u00ad\u200e\u200f\u202a-\u202e\u2060\u2066-\u2069\ufeff]")

# What a terminal or a picture may act on, or not show: control characters other than a line feed,
# direction marks.
_UNSAFE = re.compile(
    r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028\u2029\u200e\u200f\u202a-\u202e\u2066-\u2069"
    r"\ud800-\udfff\ufeff]"
)

_NEITHER_LETTER_NOR_DIGIT = re.compile(r"[\W_]+")

_MAX_MARKS = 30
"""Combining marks kept in a row: the limit of Unicode's stream-safe text format (UAX 15). CPython's
NFC takes time quadratic in their number: 4 s for 64,000."""
# A run that may hold more than that: decomposed, a letter has at most three marks and a mark at
# most two.
_MAYBE_MARKS = re.compile(r"\w?[^\w\s]{14,}")
_HAS_RUN = re.compile(
    r"[^\w\s][^\w\s]{13}"
)  # found in a third of the time, as it begins with a set


def normalize(text: str, *, lowercase: bool = False) -> str:
    """The line in NFC, with single spaces, without control characters, with at most 30 combining
    marks in a row, and optionally in lower case."""
    if not text.isprintable():
        text = _SURROGATE.sub("\ufffd", _INVISIBLE.sub("", _CONTROL.sub(" ", text)))
    if lowercase:
        text = text.lower()
    if not text.isascii():
        text = unicodedata.normalize("NFC", _with_few_marks(text))
    return " ".join(text.split())


def decompose(text: str) -> str:
    """The text in NFKD, with at most 30 combining marks in a row."""
    return unicodedata.normalize("NFKD", _with_few_marks(text))


def _with_few_marks(text: str) -> str:
    """The text with at most 30 combining marks in a row."""
    return _MAYBE_MARKS.sub(_cap_marks, text) if _HAS_RUN.search(text) else text


def _cap_marks(run: re.Match[str]) -> str:
    kept: list[str] = []
    num_marks = 0
    for character in run[0]:
        for part in unicodedata.normalize("NFD", character):
            num_marks = num_marks + 1 if unicodedata.combining(part) else 0
            if num_marks <= _MAX_MARKS:
                kept.append(part)
    return "".join(kept)


def one_line(text: str) -> str:
    """The text with spaces for everything that a reader might take for a line break."""
    return text if text.isprintable() else _SURROGATE.sub("\ufffd", _CONTROL.sub(" ", text))


def visible(text: str) -> str:
    """The text with escapes such as `\\x1b` for what a terminal or a picture may act on, or not
    show."""
    return _UNSAFE.sub(lambda match: match[0].encode("unicode_escape").decode(), text)


def display_width(text: str) -> int:
    """The terminal columns that a text takes: wide East Asian characters take two, combining marks
    none."""
    return sum(
        0 if unicodedata.combining(char) else 2 if unicodedata.east_asian_width(char) in "WF" else 1
        for char in text
    )


def is_latin(char: str) -> bool:
    """Whether a character is a letter or mark of ASCII, alone or with an accent, or another Latin
    letter."""
    return unicodedata.normalize("NFD", char)[0].isascii() or char in "ßæÆøØœŒłŁđıÐðÞþ"


def bare(text: str) -> str:
    """The letters, digits and combining marks of a text, case folded: equal for texts that differ
    in case, spaces and punctuation only. A text without letters and digits keeps its symbols."""
    folded = unicodedata.normalize("NFKC", _with_few_marks(text)).casefold()
    if not any(map(str.isalnum, folded)):
        return "".join(folded.split())
    return _NEITHER_LETTER_NOR_DIGIT.sub(_marks, folded)


def _marks(run: re.Match[str]) -> str:
    """Vowel signs are combining marks, in Hindi and Thai for example: words differ in them
    alone."""
    return "".join(
        character for character in run[0] if unicodedata.category(character).startswith("M")
    )
