"""Normalize a line before tokenization. Any string is accepted."""

import re
import unicodedata

from seq2seq_attn.text.languages import short_code

# Characters that become spaces: line and paragraph separators, tabs, NUL and other control
# characters, and zero-width spaces, which separate words in Khmer.
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u200b\u2028\u2029]")
# Lone surrogates cannot be encoded as UTF-8, so spaCy and SentencePiece reject them.
_SURROGATE = re.compile(r"[\ud800-\udfff]")
# Invisible characters without meaning: soft hyphen, direction marks, word joiner, byte-order mark.
_INVISIBLE = re.compile(r"[\u00ad\u200e\u200f\u202a-\u202e\u2060\u2066-\u2069\ufeff]")

# Characters that a terminal or a plot interprets or does not show: direction marks, characters that
# Unicode never assigns, and control characters other than a line feed.
_UNSAFE = re.compile(
    r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028\u2029\u200e\u200f\u202a-\u202e\u2066-\u2069"
    r"\ud800-\udfff\ufeff\ufdd0-\ufdef\ufffe\uffff]"
)

_NEITHER_LETTER_NOR_DIGIT = re.compile(r"[\W_]+")

_MAX_MARKS = 30
"""maximum number of successive combining marks, the limit of Unicode's stream-safe text format (UAX
15). The time of CPython's NFC is quadratic in the number of marks: 4 s for 64,000."""
# A sequence that may contain more than `_MAX_MARKS` marks when it is decomposed. A letter
# decomposes into at most three marks, and a mark into at most two.
_MAYBE_MARKS = re.compile(r"\w?[^\w\s]{14,}")
# A faster test for such a sequence: it takes a third of the time, as the pattern begins with a set.
_HAS_RUN = re.compile(r"[^\w\s][^\w\s]{13}")


def normalize(text: str, *, lowercase: bool = False, language: str = "") -> str:
    """Return the line in Unicode form NFC, with single spaces, without control characters, with at
    most 30 successive combining marks, and in the lower case of a language if `lowercase` is
    set."""
    if not text.isprintable():
        text = _INVISIBLE.sub("", one_line(text))
    if lowercase:
        text = lower(text, language)
    if not text.isascii():
        text = unicodedata.normalize("NFC", _with_few_marks(text))
    return " ".join(text.split())


def has_dotless_i(language: str) -> bool:
    """Return whether I and İ are the capitals of ı and i, as in Turkish and Azerbaijani."""
    return short_code(language) in ("az", "tr")


def lower(text: str, language: str) -> str:
    """Return the text in lower case by the rules of a language."""
    if has_dotless_i(language):
        text = text.replace("I\u0307", "i").replace("İ", "i").replace("I", "ı")
    return text.lower()


def decompose(text: str) -> str:
    """Return the text in Unicode form NFKD, with at most 30 successive combining marks."""
    return unicodedata.normalize("NFKD", _with_few_marks(text))


def _with_few_marks(text: str) -> str:
    """Return the text with at most 30 successive combining marks."""
    return _MAYBE_MARKS.sub(_cap_marks, text) if _HAS_RUN.search(text) else text


def _cap_marks(run: re.Match[str]) -> str:
    """Return the matched sequence in Unicode form NFD, without the combining marks after the first
    30 in a row."""
    kept = []
    num_marks = 0
    for character in run[0]:
        for code_point in unicodedata.normalize("NFD", character):
            num_marks = num_marks + 1 if unicodedata.combining(code_point) else 0
            if num_marks <= _MAX_MARKS:
                kept.append(code_point)
    return "".join(kept)


def one_line(text: str) -> str:
    """Replace characters that a reader may take for line breaks by spaces."""
    return text if text.isprintable() else _SURROGATE.sub("\ufffd", _CONTROL.sub(" ", text))


def visible(text: str) -> str:
    """Write escapes such as `\\x1b` for characters that a terminal or a plot interprets or does not
    show."""
    return _UNSAFE.sub(lambda match: match[0].encode("unicode_escape").decode(), text)


def display_width(text: str) -> int:
    """Return the number of terminal columns of a text. A wide East Asian character takes two
    columns, and a combining mark takes none."""
    return sum(
        0 if unicodedata.combining(char) else 2 if unicodedata.east_asian_width(char) in "WF" else 1
        for char in text
    )


def bare(text: str) -> str:
    """Return the letters, digits and combining marks of a text, case folded. Texts that differ only
    in case, spaces and punctuation give equal results. A text without letters and digits keeps its
    symbols."""
    folded = unicodedata.normalize("NFKC", _with_few_marks(text)).casefold()
    if not any(map(str.isalnum, folded)):
        return "".join(folded.split())
    return _NEITHER_LETTER_NOR_DIGIT.sub(_marks, folded)


def _marks(run: re.Match[str]) -> str:
    """Return the combining marks of the matched sequence. Vowel signs are combining marks, for
    example in Hindi and Thai, and some words differ in vowel signs only."""
    return "".join(
        character for character in run[0] if unicodedata.category(character).startswith("M")
    )
