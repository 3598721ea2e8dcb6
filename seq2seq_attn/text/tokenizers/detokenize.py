"""Detokenize spaCy's words and punctuation by rules that restore the spaces.

The rules are made for English and German; other languages share most of the English rules.
Quotation marks are paired in the same way in all languages: «a», »a«, “a”, „a“, „a”, ”a”.
"""

from collections.abc import Sequence

from seq2seq_attn.text.languages import short_code

_CLOSING = frozenset(", . ; : ! ? ) ] } .. ... … ، ؛ ؟ ۔ । ॥ ։ ። ፣ ፤".split())
_SPACED_IN_FRENCH = frozenset("; : ! ? « »".split())
_OPENING = frozenset("( [ { ¿ ¡".split())
# Opening to closing marks. A mark that closes itself opens if none is open.
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
"""languages with words such as l' and dell'"""
_CURRENCIES = frozenset("$ £ € ¥".split())
_ENTITIES = frozenset(("amp", "quot", "lt", "gt", "apos", "nbsp"))
_CLITICS = frozenset(("'s", "'re", "'ve", "'ll", "'d", "'m", "n't"))
_PRONOUNS = frozenset("i you he she it we they what that who there where here how let".split())
_NEGATED = frozenset(
    "do does did is are was were has have had ca could wo would should must need ai might".split()
)
# Words that spaCy splits in two.
_SPLIT_WORDS = frozenset(
    (("can", "not"), ("gon", "na"), ("wan", "na"), ("got", "ta"), ("y'", "all"))
)
_BARE_CLITICS = frozenset("s d m re ve ll".split())

_LEFT = (True, False)
_RIGHT = (False, True)
_BOTH = (True, True)
_NEITHER = (False, False)


def detokenize(tokens: Sequence[str], language: str) -> str:
    """The line of spaCy's tokens: `["I", "ca", "n't", "."]` gives `"I can't."`."""
    language = short_code(language)
    pieces: list[str] = []
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
    """Whether token i is written without a space on its left, and on its right."""
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
        return _quote(tokens, i, open_quotes)
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
    """Whether a hyphen token was inside a word, or a range such as 20-30."""
    if language == "de":  # spaCy does not split German words at hyphens
        return previous[-1:].isdecimal() and following[:1].isdecimal()
    return any(map(str.isalnum, previous)) and any(map(str.isalnum, following))


def _continues_word(previous: str, token: str, language: str) -> bool:
    previous = previous.lower()
    token = token.lower().replace("’", "'")
    if language == "de":
        return token == "'s"
    if token in _CLITICS or (previous, token) in _SPLIT_WORDS:
        return True
    if token == "nt":
        return previous in _NEGATED
    # "im", "she s"; an apostrophe after a space is a separate token
    return token in _BARE_CLITICS and (previous in _PRONOUNS or previous in ("'", "’"))


def _quote(tokens: Sequence[str], i: int, open_quotes: list[str]) -> tuple[bool, bool]:
    token = tokens[i]
    if open_quotes and token in _QUOTES[open_quotes[-1]]:
        open_quotes.pop()
        return _LEFT
    if token == "'" and token not in tokens[i + 1 :]:  # no closing mark: an apostrophe
        return _RIGHT if i + 1 < len(tokens) and tokens[i + 1][:1].isdecimal() else _LEFT
    if (
        token == "'"
        and i
        and tokens[i - 1][-1:].lower() in ("s", "z", "x")
        and tokens[i + 1 :].count(token) % 2 == 0
    ):
        return _LEFT  # the possessive of a plural before a quotation
    open_quotes.append(token)
    return _RIGHT
