"""Detokenize spaCy's tokens by rules that tell where spaces stand.

Most rules for English apply to every language but German. Quotation marks are paired in the same
way in all languages: «a», »a«, “a”, „a“, „a”, ”a”.
"""

from collections.abc import Sequence

from seq2seq_attn.text.languages import short_code

# Marks that are joined to the token on their left, and marks that are joined to the token on their
# right. In French, some marks have spaces on both sides.
_CLOSING = frozenset(", . ; : ! ? ) ] } .. ... … ، ؛ ؟ ۔ । ॥ ։ ። ፣ ፤".split())
_SPACED_IN_FRENCH = frozenset("; : ! ? « »".split())
_OPENING = frozenset("( [ { ¿ ¡".split())
_QUOTE_TABLE = """
" "
' '
“ ”
” ” “
„ “ ”
‘ ’
‚ ‘ ’
« »
» «
`` ''
"""
"""each mark that opens a quotation, and the marks that may close the quotation"""
_QUOTES = {opening: marks for opening, *marks in map(str.split, _QUOTE_TABLE.strip().splitlines())}
_ELIDING = frozenset(("ca", "fr", "it"))
"""languages in which words such as l' and dell' are joined to the next word"""
_CURRENCIES = frozenset("$ £ € ¥".split())
_ENTITIES = frozenset(("amp", "quot", "lt", "gt", "apos", "nbsp"))
_CLITICS = frozenset(("'s", "'re", "'ve", "'ll", "'d", "'m", "n't"))
_PRONOUNS = frozenset("i you he she it we they what that who there where here how let".split())
_NEGATED = frozenset(
    "do does did is are was were has have had ca could wo would should must need ai might".split()
)
"""words that `nt` follows in text without apostrophes, as in `dont`"""
_SPLIT_WORDS = frozenset(
    (("can", "not"), ("gon", "na"), ("wan", "na"), ("got", "ta"), ("y'", "all"))
)
"""words that spaCy splits into two tokens"""
_BARE_CLITICS = frozenset("s d m re ve ll".split())

# Whether a token is joined to the token on its left, and to the token on its right.
_LEFT = (True, False)
_RIGHT = (False, True)
_BOTH = (True, True)
_NEITHER = (False, False)


def detokenize(tokens: Sequence[str], language: str) -> str:
    """Join spaCy's tokens to a line: `["I", "ca", "n't", "."]` gives `"I can't."`."""
    language = short_code(language)
    quotes = _join_quotes(tokens, language)
    pieces = []
    was_joined = True  # no space stands before the first token
    for i, token in enumerate(tokens):
        joins_left, joins_right = quotes.get(i) or _join(tokens, i, language)
        if not (joins_left or was_joined):
            pieces.append(" ")
        pieces.append(token)
        was_joined = joins_right
    return "".join(pieces)


def _join_quotes(tokens: Sequence[str], language: str) -> dict[int, tuple[bool, bool]]:
    """Return for each quotation mark and apostrophe, by position, whether it is joined to the token
    on the left, and to the token on the right.

    Quotations may be nested. A mark that could open or close a quotation closes the innermost
    quotation.
    """
    joins = {}
    open_quotes: list[str] = []
    for i, token in enumerate(tokens):
        if language == "fr" and token in _SPACED_IN_FRENCH:
            continue
        if open_quotes and token in _QUOTES[open_quotes[-1]]:
            open_quotes.pop()
            joins[i] = _LEFT
        elif token in _QUOTES:
            apostrophe = _join_apostrophe(tokens, i) if token == "'" else None
            if apostrophe is None:
                open_quotes.append(token)
            joins[i] = apostrophe or _RIGHT
    return joins


def _join_apostrophe(tokens: Sequence[str], i: int) -> tuple[bool, bool] | None:
    """Return whether the mark `'` at position i is joined to the token on the left, and to the
    token on the right. Return None if the mark is no apostrophe, but opens a quotation."""
    following = tokens[i + 1 :]
    num_marks = following.count("'")
    if num_marks == 0 and following and following[0][:1].isdecimal():
        return _RIGHT  # '90s
    # The possessive of a plural or of a German name: dogs', Fritz', Marx'.
    may_be_possessive = i > 0 and tokens[i - 1][-1:].lower() in ("s", "z", "x")
    # No mark behind can close a quotation, or the marks behind form pairs without this mark.
    if num_marks == 0 or (may_be_possessive and num_marks % 2 == 0):
        return _LEFT
    return None


def _join(tokens: Sequence[str], i: int, language: str) -> tuple[bool, bool]:
    """Return whether token i, which is no quotation mark, is joined to the token on the left, and
    to the token on the right."""
    token = tokens[i]
    previous = tokens[i - 1] if i else ""
    following = tokens[i + 1] if i + 1 < len(tokens) else ""
    if language == "fr" and token in _SPACED_IN_FRENCH:
        return _NEITHER
    if token in _CLOSING:
        return _LEFT
    if token in _OPENING or _is_prefix(token, previous, following):
        return _RIGHT
    if token == "/" or (token == "-" and _is_inside_word(previous, following, language)):
        return _BOTH
    if language in _ELIDING and len(token) > 1 and token[-1] in "'’":
        return _RIGHT
    return _LEFT if _continues_word(previous, token, language) else _NEITHER


def _is_prefix(token: str, previous: str, following: str) -> bool:
    """Return whether a sign belongs to the token on the right, as in `$5`, `#1` and `&amp;`."""
    if token in _CURRENCIES:
        return following[:1].isdecimal() and not previous[-1:].isdecimal()
    if token == "#":
        return following[:1].isalnum()
    return token == "&" and following.removesuffix(";") in _ENTITIES


def _is_inside_word(previous: str, following: str, language: str) -> bool:
    """Return whether a hyphen belongs to the word around the hyphen, or to a range such as
    20-30."""
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
    if language == "fr" and token[0] == "-" and token[1:2].isalpha():
        return True  # "est", "-il"
    if language == "en" and token == "%":
        return previous[-1:].isdecimal()
    if token == "nt":
        return previous in _NEGATED
    # Clitics without an apostrophe ("im"), or behind an apostrophe that is a token ("she ' s").
    return token in _BARE_CLITICS and (previous in _PRONOUNS or previous in ("'", "’"))
