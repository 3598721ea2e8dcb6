"""PO catalogues of gettext: the translation of a `msgid` is written into its empty `msgstr`."""

import json
import re
from collections.abc import Iterator

from seq2seq_attn.errors import UserError
from seq2seq_attn.text.documents.base import Text, scan
from seq2seq_attn.text.languages import short_code

_STRING = r'"(?:[^"\\\0-\x08\n-\x1f]|\\[bfnrt"\\])*"'
"""a string of JSON, which is a string of PO too"""
_STRINGS = rf"\s*+({_STRING}(?:\s*+{_STRING})*+)\s*+"
_EMPTY = re.compile(r'msgstr(?:\[\d+\])?\s*+(""(?:\s*+"")*+)\s*+')
_OTHER_CHARSET = r'msgid\s*""\s*msgstr\s*(?:"[^"]*"\s*)*"[^"]*charset=(?!utf-?8|charset)'
"""a header with an encoding other than UTF-8; templates have the word CHARSET in its place"""
_ITEM = re.compile(
    rf"""[\s\ufeff]+|\#[^\r\n]*
    |(?!(?i:{_OTHER_CHARSET}))
    (?:msgctxt{_STRINGS})?msgid{_STRINGS}(?:msgid_plural{_STRINGS})?
    (?:((?:{_EMPTY.pattern})++)(?!msgstr|")|(?:msgstr(?:\[\d+\])?{_STRINGS})+)""",
    re.VERBOSE,
)
"""matches white space, a comment, or an entry. Obsolete entries are comments. The groups are
`msgctxt`, `msgid`, `msgid_plural`, the forms of an entry that are all empty, the last of these, and
otherwise the last form"""


def find_texts(document: str, languages: str) -> Iterator[Text]:
    """Yield the texts of the entries that have no translation, not even a fuzzy translation.

    Of two forms of a plural, the first is a translation of `msgid`. All other forms are
    translations of `msgid_plural`, because each of them may stand for several numbers.

    Raises:
        ValueError: the catalogue is damaged, or says that it is not in UTF-8.
        UserError: the header names a language other than the target language of the run.
    """
    target = languages.rpartition(" ")[2]
    for entry in scan(_ITEM, document):
        if entry[2] == '""':
            _check_header(_decode(entry[0]), target)
        forms = list(_EMPTY.finditer(document, *entry.span(4)))
        for index, form in enumerate(forms):
            is_singular = not entry[3] or (index == 0 and len(forms) == 2)
            text = _decode(entry[2 if is_singular else 3])
            yield Text(*form.span(1), text, entry.end())


def _check_header(header: str, target: str) -> None:
    """Raise UserError if a header names a language other than the target language."""
    language = re.search("(?m)^Language:[ \t]*([A-Za-z]+)", header)
    if language and short_code(language[1]) != short_code(target):
        raise UserError(f"{language[0]}: the run translates to {target}")


def find_pairs(document: str) -> Iterator[dict[str, str]]:
    """Yield the text and the translation of each entry. For an entry with plural forms, these are
    the plural and the last form. The translation of an untranslated entry is empty. Yield an empty
    dictionary for a fuzzy entry. Raises ValueError if
    the catalogue is damaged, or says that it is not in UTF-8."""
    is_fuzzy = False
    for item in scan(_ITEM, document):
        if re.match("#,.*fuzzy", item[0]):
            is_fuzzy = True
        elif item[2]:
            pair = {"msgid": _decode(item[3] or item[2]), "msgstr": _decode(item[6] or "")}
            yield {} if is_fuzzy else pair
            is_fuzzy = False


def _decode(strings: str) -> str:
    """Return the text of adjacent strings, joined."""
    lines = re.findall(_STRING, strings)
    return "".join(json.loads(line, strict=False) for line in lines)


def encode(translation: str, original: str) -> str:
    """Return a translation as a string of a catalogue."""
    return json.dumps(translation, ensure_ascii=False)
