"""Compare the script of a text with the script of its language, to detect exchanged sides and wrong
columns."""

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable

from seq2seq_attn.text.languages import short_code

_LANGUAGES = {
    "ARABIC": "acm acq aeb ajp apc ar arb ars ary arz ckb fa ks pnb ps sd ug ur",
    "ARMENIAN": "hy",
    "BENGALI": "as bn mni",
    "CANADIAN": "cr iu oj",
    "CJK": "wuu yue zh",
    "CYRILLIC": "ab av ba be bg ce cu cv kk kv ky mk mn os ru sr tg tt uk",
    "DEVANAGARI": "awa bho hi hne mag mai mr ne sa",
    "ETHIOPIC": "am ti",
    "GEORGIAN": "ka",
    "GREEK": "el",
    "GUJARATI": "gu",
    "GURMUKHI": "pa",
    "HANGUL": "ko",
    "HEBREW": "he yi",
    "JAPANESE": "ja",
    "KANNADA": "kn",
    "KHMER": "km",
    "LAO": "lo",
    "MALAYALAM": "ml",
    "MYANMAR": "my shn",
    "OL": "sat",
    "ORIYA": "or",
    "SINHALA": "si",
    "TAMIL": "ta",
    "TELUGU": "te",
    "THAANA": "dv",
    "THAI": "th",
    "TIBETAN": "bo dz",
    "TIFINAGH": "tzm",
    "YI": "ii",
}
"""languages that are not written in Latin letters, by script. A script is named by the first word
of its letters' Unicode names."""
_SCRIPTS = {code: script for script, codes in _LANGUAGES.items() for code in codes.split()}
_IN_SEVERAL = frozenset(
    "ace ae az ban bjn bug ff ha ks ku kk ky min mn ms pa pi sa sat sd so sr taq tg tk tt tzm ug "
    "uz".split()
)
"""languages that are written in several scripts"""
_TAGS = {
    "Arab": "ARABIC",
    "Cyrl": "CYRILLIC",
    "Deva": "DEVANAGARI",
    "Hang": "HANGUL",
    "Hans": "CJK",
    "Hant": "CJK",
    "Latn": "LATIN",
}
"""scripts by the part of a language code that names them"""
UNSPACED_SENTENCES = ("CJK", "JAPANESE")
"""scripts without a space between sentences"""
_KANA = ("HIRAGANA", "KATAKANA", "KATAKANA-HIRAGANA")
_NO_LANGUAGES = {"word", "phonemes"}
"""the sides of `configs/g2p.yaml`, whose words may be in any language"""
MIN_SHARE = 0.1
"""minimum share of letters in the script of the language; texts hold foreign names and terms"""


def usual_script(language: str) -> str | None:
    """Return the script of a language, as the first word of its letters' Unicode names.

    A code may name the script, as `zh_Hant` does. Otherwise the script is None for a language that
    is written in several scripts, and for the sides of a pronunciation dictionary. An unknown
    language is expected in Latin letters, because the words of unknown languages are separated, and
    scores computed, as for European languages.
    """
    tag = re.search("[-_]([A-Z][a-z]{3})$", language)
    code = short_code(language)
    has_any_script = code in _IN_SEVERAL or code in _NO_LANGUAGES
    script = None if has_any_script else _SCRIPTS.get(code, "LATIN")
    if tag is None:
        return script
    if script == "LATIN":  # the code may name a script that `_TAGS` does not have
        script = None
    return _TAGS.get(tag[1], script)


def is_in_script(texts: Iterable[str], script: str, min_share: float = MIN_SHARE) -> bool:
    """Return whether at least `min_share` of the letters of texts belong to a script. Texts without
    letters are in every script. Japanese is written in kana and Chinese characters; a text with
    more than a few kana is not Chinese."""
    if script == "LATIN":
        min_share = 0.5  # names of languages that are unknown count as Latin, such as "jp"
    counts = Counter[str]()
    for text in texts:
        for character in filter(str.isalpha, text):
            name = unicodedata.name(character, "UNKNOWN").split()[0]
            counts["JAPANESE" if name in _KANA else name] += 1
    num_letters = counts.total()
    if script == "CJK" and counts["JAPANESE"] > MIN_SHARE * num_letters:
        return False
    if script == "JAPANESE":
        counts[script] += counts["CJK"]
    return counts[script] >= min_share * num_letters
