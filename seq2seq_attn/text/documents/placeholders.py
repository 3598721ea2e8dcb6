"""Placeholders, such as `%s`, `{name}` and `<b>`, that a translation must have as often as the
text."""

import re
from functools import partial

TAG = re.compile(r"</?[A-Za-z][^<>]*>|<[\d:.]+>|\{\\[^{}]*\}|⟦\d+⟧")
"""markup such as `<b>`, `<00:01.000>` and `{\\an8}`, and marks of tags (`markup.py`)"""
_PLACEHOLDERS = (
    r"%%",
    r"%\w+%",  # %name%
    r"%(?:\(\w+\)|\d+\$)?[-+#]*\d*(?:\.\d+)?[hlqjzt]*[diouxXeEfFgGcrsa@]",  # %s, %(name)d, %1$s
    r"%L?\d+|%L?n\b",  # %1, %L1, %n of Qt and KDE
    r"\$?\{[^{}]*\}",  # {name}, ${name}
    r"\$[A-Za-z_]\w*",
    r"&#?\w+;",  # entities of HTML
    r"-->|<",  # they would end a cue, or begin a tag
    r"(?:https?://|ftp://|\bwww\.)[^\s<>\"]*[\w/]",
    # The first lookbehind keeps the time linear in the length of a word.
    r"(?<![\w.+-])[\w.+-]+@[\w-]+(?:\.[\w-]+)+",  # e-mail addresses
    r"(?<!\w)@[A-Za-z_]\w*",
    r"(?<![\w:]):[A-Za-z_]\w*",  # :name, but not the time 10:45
    r"[\0-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]",  # XML and PO cannot have them
)
_PLACEHOLDER = re.compile("|".join(_PLACEHOLDERS))


def has_words(text: str) -> bool:
    """Return whether a text has letters besides its placeholders."""
    return any(map(str.isalpha, _without_placeholders(text)))


def keeps_placeholders(text: str, translation: str) -> bool:
    """Return whether a translation has the placeholders of a text. Tags, and placeholders without a
    name or number such as `%s`, must be in the order of the text.

    Return False if the text has braces outside placeholders, as messages with nested plural forms
    have.
    """
    if TAG.findall(text) != TAG.findall(translation):
        return False
    if re.search("[{}]", _without_placeholders(text)):
        return False
    # Placeholders such as %s have equal keys, so sorting leaves them in order; %1 has a number.
    key = partial(re.sub, r"\A%[^%($]*[A-Za-z@]\Z", "")
    expected = sorted(_PLACEHOLDER.findall(text), key=key)
    return expected == sorted(_PLACEHOLDER.findall(translation), key=key)


def _without_placeholders(text: str) -> str:
    return _PLACEHOLDER.sub(" ", TAG.sub(" ", text))
