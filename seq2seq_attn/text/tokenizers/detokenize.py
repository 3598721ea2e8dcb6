"""Detokenize spaCy's words and punctuation by rules that restore the spaces.

The rules are made for English and German. Other languages share most of the English rules.
Quotation marks are paired in the same way in all languages: «a», »a«, “a”, „a“, „a”, ”a”.
"""

from collections.abc import Sequence

from seq2seq_attn.text.languages import short_code

_CLOSING = frozenset(", . ; : ! ? ) ] } .. ... … ، ؛ ؟ ۔ । ॥ ։ ። ፣ ፤".split())
_SPACED_IN_FRENCH = frozenset("; : ! ? « »".split())
_OPENING = frozenset("( [ { ¿ ¡".split())
# Each opening mark and the marks that may close it. A mark that may close itself is read as an
# opening mark if no quotation is open.
_QUOTES = {
    '"': '"',
    "'": "'",
    "“": "”",
    "”": "”“",
    "„": "“”",
    "‘": "’",
    "‚": "‘’",
    "«": "»",
    "»": "«",
    "``": "''",
}
_ELIDING = frozenset(("ca", "fr", "it"))
"""languages in which words such as l' and dell' are joined to the next word"""
_CURRENCIES = frozenset("$ £ € ¥".split())
_ENTITIES = frozenset(("amp", "quot", "lt", "gt", "apos", "nbsp"))
_CLITICS = frozenset(("'s", "'re", "'ve", "'ll", "'d", "'m", "n't"))
_PRONOUNS = frozenset("i you he she it we they what that who there where here how let".split())
_NEGATED = frozenset(
    "do does did is are was were has have had ca could wo would should must need ai might".split()
)
# The two tokens of words that spaCy splits.
_SPLIT_WORDS = frozenset(
    (("can", "not"), ("gon", "na"), ("wan", "na"), ("got", "ta"), ("y'", "all"))
)
_BARE_CLITICS = frozenset("s d m re ve ll".split())

# Whether a token is written without a space on its left, and on its right.
_LEFT = (True, False)
_RIGHT = (False, True)
_BOTH = (True, True)
_NEITHER = (False, False)


def detokenize(tokens: Sequence[str], language: str) -> str:
    """Join spaCy's tokens to a line: `["I", "ca", "n't", "."]` gives `"I can't."`."""
    language = short_code(language)
    pieces = []
    open_quotes: list[str] = []
    glue_next = True
    for i, token in enumerate(tokens):
        glue_left, glue_right = _attachment(tokens, i, open_quotes, language)
        if not (glue_left or glue_next):
            pieces.append(" ")
        pieces.append(token)
        glue_next = glue_right
    return "".join(pieces)


def _attachment(
    tokens: Sequence[str], i: int, open_quotes: list[str], language: str
) -> tuple[bool, bool]:
    """Return whether token i is written without a space on its left, and on its right.

    `open_quotes` is a stack of the quotation marks that are open before token i.
    `_quote_attachment` changes the stack if token i is a quotation mark, so tokens must be passed
    in order.
    """
    token = tokens[i]
    previous = tokens[i - 1] if i else ""
    following = tokens[i + 1] if i + 1 < len(tokens) else ""
    if language == "fr" and token in _SPACED_IN_FRENCH:
        return _NEITHER
    if token in _CLOSING:
        return _LEFT
    if token in _OPENING:
        return _RIGHT
    if token in _QUOTES or (open_quotes and token in _QUOTES[open_quotes[-1]]):
        return _quote_attachment(tokens, i, open_quotes)
    if token == "/" or (token == "-" and _is_inside_word(previous, following, language)):
        return _BOTH
    if token in _CURRENCIES:
        return _RIGHT if following[:1].isdecimal() and not previous[-1:].isdecimal() else _NEITHER
    if token == "#":
        return _RIGHT if following[:1].isalnum() else _NEITHER
    if token == "&":
        return _RIGHT if following.removesuffix(";") in _ENTITIES else _NEITHER
    if language == "en" and token == "%":
        return _LEFT if previous[-1:].isdecimal() else _NEITHER
    if language in _ELIDING and len(token) > 1 and token[-1] in "'’":
        return _RIGHT
    if language == "fr" and token[0] == "-" and token[1:2].isalpha():
        return _LEFT  # "est", "-il"
    return _LEFT if _continues_word(previous, token, language) else _NEITHER


def _is_inside_word(previous: str, following: str, language: str) -> bool:
    """Return whether a hyphen belongs to the word around it, or to a range such as 20-30."""
    if language == "de":  # spaCy does not split German words at hyphens
        return previous[-1:].isdecimal() and following[:1].isdecimal()
    return any(map(str.isalnum, previous)) and any(map(str.isalnum, following))


def _continues_word(previous: str, token: str, language: str) -> bool:
    """Return whether a token is written without a space after the previous token, as `n't` after
    `ca`."""
    previous = previous.lower()
    token = token.lower().replace("’", "'")
    if language == "de":
        return token == "'s"
    if token in _CLITICS or (previous, token) in _SPLIT_WORDS:
        return True
    if token == "nt":
        return previous in _NEGATED
    # Clitics without an apostrophe ("im"), or behind an apostrophe that is a token ("she ' s").
    return token in _BARE_CLITICS and (previous in _PRONOUNS or previous in ("'", "’"))


def _quote_attachment(tokens: Sequence[str], i: int, open_quotes: list[str]) -> tuple[bool, bool]:
    """Return whether token i, a quotation mark or apostrophe, is written without a space on its
    left, and on its right.

    `open_quotes` is changed: the last mark is removed if token i closes that mark, and token i is
    added if it opens a quotation. An apostrophe changes nothing.
    """
    token = tokens[i]
    if open_quotes and token in _QUOTES[open_quotes[-1]]:
        open_quotes.pop()
        return _LEFT
    following = tokens[i + 1 :]
    if token == "'" and token not in following:  # an apostrophe, as no mark closes it
        if following and following[0][:1].isdecimal():  # '90s
            return _RIGHT
        return _LEFT
    ends_in_s = i > 0 and tokens[i - 1][-1:].lower() in ("s", "z", "x")
    if token == "'" and ends_in_s and following.count(token) % 2 == 0:
        return _LEFT  # possessive of a plural: the marks behind it form pairs without it
    open_quotes.append(token)
    return _RIGHT
