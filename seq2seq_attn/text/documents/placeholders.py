"""Placeholders: parts of a text that a translation must have exactly as often as the text."""

import re
from functools import partial

TAG = re.compile(r"</?[A-Za-z][^<>]*>|<[\d:.]+>|\{\\[^{}]*\}|⟦\d+⟧")
"""markup such as `<b>`, `<00:01.000>` and `{\\an8}`, and marks of tags (`markup.py`)"""
_PLACEHOLDERS = (
    r"%%",
    r"%\w+%",  # %name%
    r"%(?:\(\w+\)|\d+\$)?[-+#]*\d*(?:\.\d+)?[hlqjzt]*[diouxXeEfFgGcrsa@]",  # %s, %(name)d, %1$s
    r"\$?\{[^{}]*\}",  # {name}, ${name}
    r"\$[A-Za-z_]\w*",
    r"&#?\w+;",  # entities of HTML
    r"-->|<",  # they would end a cue, or begin a tag
    r"https?://[^\s<>\"]*[\w/]",
    r"[\0-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]",  # XML and PO cannot have them
)
_PLACEHOLDER = re.compile("|".join(_PLACEHOLDERS))


def has_words(text: str) -> bool:
    """Return whether a text has letters besides its placeholders."""
    return any(map(str.isalpha, _without_placeholders(text)))


def keeps_placeholders(text: str, translation: str) -> bool:
    """Return whether a translation has the placeholders of a text. Its tags and its placeholders
    without a name or number must be in their order.

    Return False if the text has other braces, as in messages with nested plural forms.
    """
    if TAG.findall(text) != TAG.findall(translation):
        return False
    if re.search("[{}]", _without_placeholders(text)):
        return False
    # Placeholders such as %s sort as equal, and so stay in their order.
    key = partial(re.sub, r"\A%[^%($]+\Z", "")
    before = sorted(_PLACEHOLDER.findall(text), key=key)
    return before == sorted(_PLACEHOLDER.findall(translation), key=key)


def _without_placeholders(text: str) -> str:
    return _PLACEHOLDER.sub(" ", TAG.sub(" ", text))
