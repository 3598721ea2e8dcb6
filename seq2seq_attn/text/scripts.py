"""Find the script that a text or a language is written in, to detect exchanged source and
target."""

import unicodedata
from collections import Counter
from collections.abc import Iterable

from seq2seq_attn.text.languages import CODE, short_code

_LANGUAGES = {
    "ARABIC": "ar arz ars ary acm apc ckb fa ks pnb ps sd ug ur",
    "ARMENIAN": "hy",
    "BENGALI": "as bn",
    "CJK": "ja wuu yue zh",
    "CYRILLIC": "ab ba be bg ce cv kk ky mk mn os ru sr tg tt uk",
    "DEVANAGARI": "awa bho hi hne mag mai mr ne sa",
    "ETHIOPIC": "am ti",
    "GEORGIAN": "ka",
    "GREEK": "el",
    "GUJARATI": "gu",
    "GURMUKHI": "pa",
    "HANGUL": "ko",
    "HEBREW": "he yi",
    "KANNADA": "kn",
    "KHMER": "km",
    "LAO": "lo",
    "MALAYALAM": "ml",
    "MYANMAR": "my shn",
    "ORIYA": "or",
    "SINHALA": "si",
    "TAMIL": "ta",
    "TELUGU": "te",
    "THAI": "th",
    "TIBETAN": "bo dz",
}
"""languages that are not written in Latin letters, by script. A script is named by the first word
of its letters' Unicode names."""
_SCRIPTS = {code: script for script, codes in _LANGUAGES.items() for code in codes.split()}
_WRITTEN_WITH_CJK = ("HIRAGANA", "KATAKANA")


def usual_script(language: str) -> str | None:
    """Return the script of a language, as the first word of its letters' Unicode names, or None if
    `language` is not a language code."""
    if not CODE.fullmatch(language):
        return None
    return _SCRIPTS.get(short_code(language), "LATIN")


def main_script(texts: Iterable[str]) -> str | None:
    """Return the script of most letters in the texts, or None if the texts have no letters."""
    counts: Counter[str] = Counter()
    for text in texts:
        for character in filter(str.isalpha, text):
            counts[unicodedata.name(character, "UNKNOWN").split()[0]] += 1
    if not counts:
        return None
    [(script, _)] = counts.most_common(1)
    return "CJK" if script in _WRITTEN_WITH_CJK else script
