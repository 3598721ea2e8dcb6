"""Markdown: headings, paragraphs and cells of tables. Their translations keep inline markup."""

import re
from collections.abc import Iterator
from functools import cache
from typing import Any

from seq2seq_attn.text.documents.base import Form, Text
from seq2seq_attn.text.documents.placeholders import has_words

_HEAD = re.compile(r"(?s)\A\ufeff?(?:(---|\+\+\+)\s*[\r\n].*?[\r\n]\1[ \t]*(?=[\r\n]|\Z))?")
"""a byte-order mark, and front matter"""
_LINE_START = re.compile(r"\A|(?<=\n)|(?<=\r)(?!\n)")
_SOFT_BREAK = re.compile(r"(?<!  )(?<!\\)(?:\r\n?|(?<!\r)\n)[ \t>]*")
"""a line break that is not kept, and the markup before the next line"""
_EXTENDED = re.compile(r"(?m)^[ \t>]*(?::|\$\$)")
"""matches a definition, a container or a formula, which CommonMark reads as a paragraph"""
_MARKUP = re.compile(
    r"(?m)\\?[|#]|\\$|^=+$|^(?::|\$\$)|\[[^\[\]]*\](?![\[(]):?|<code>[^<]*|<[^<>]*?(?= alt=|>)"
)
"""a mark of tables, headings and extended Markdown, a backslash that ends a line, a reference, code
in HTML, or a tag without the description of an image"""


@cache
def _parser() -> Any:
    from markdown_it import MarkdownIt

    return MarkdownIt("commonmark").enable(["table", "strikethrough"])


def find_texts(document: str, languages: str) -> Iterator[Text]:
    """Yield the texts that have words besides code, images and addresses. If a text of the parser
    is not found in the document, the span is empty, so that the text is not translated."""
    _, _, body = _HEAD.split(document, maxsplit=1)
    stop = len(document) - len(body)
    lines = [stop + start.start() for start in _LINE_START.finditer(body)]
    for block in _parser().parse(body):
        if block.type != "inline":
            continue
        parts = [re.escape(line.strip()) for line in block.content.split("\n")]
        pattern = re.compile(r"\s[\s>]*".join(parts).replace(r"\|", r"\\?\|"))
        place = pattern.search(document, max(stop, lines[block.map[0]]))
        start, stop = place.span() if place else (stop, stop)
        if _EXTENDED.search(block.content):
            stop = start
        text = document[start:stop] or block.content
        if any(child.type == "text" and has_words(child.content) for child in block.children):
            yield Text(start, stop, _SOFT_BREAK.sub(" ", text))


def _markup(text: str) -> list[str]:
    """Return the markup of a text, sorted; a translation must have equal markup."""
    return sorted(_MARKUP.findall(f"{text}\n{_parser().render(text)}"))


def encode(translation: str, original: str) -> str:
    """Return a translation, or the original with its line breaks if the translation is equal.
    Raises ValueError if the translation has other markup, or the original is empty."""
    text = _SOFT_BREAK.sub(" ", original)
    if translation.split() == text.split():
        return original
    if _markup(translation) != _markup(text):
        raise ValueError("other markup")
    return translation


MARKDOWN = Form(find_texts, encode)
