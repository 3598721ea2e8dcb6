"""Markdown: headings, paragraphs and cells of tables. Their translations keep inline markup."""

import re
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any

from seq2seq_attn.text.documents.base import Text
from seq2seq_attn.text.documents.markup import MARK, join_texts, split_texts
from seq2seq_attn.text.documents.placeholders import has_words

_HEAD = re.compile(r"(?s)\A\ufeff?(?:(---|\+\+\+)[ \t]*\r?\n(?=\S).*?[\r\n]\1[ \t]*(?=[\r\n]|\Z))?")
"""a byte-order mark, and front matter"""
_LINE_START = re.compile(r"\A|(?<=\n)|(?<=\r)(?!\n)")
_SOFT_BREAK = re.compile(r"(?<!  )(?<!\\)(?:\r\n?|(?<!\r)\n)[ \t>]*")
"""a line break that is not kept, and the markup before the next line"""
_EXTENDED = re.compile(r"(?m)^[ \t>]*(?::|\$\$|!!!|\?\?\?)")
"""matches a definition, a container, an admonition or a formula, which CommonMark reads as a
paragraph"""
_MARKUP = re.compile(
    r"(?m)\\?[|#]|\\$|^=+$|^(?::|\$\$)|\[[^\[\]]*\](?!\[[^\]]|\():?|<code>[^<]*|<[^<>]*?(?= alt=|>)"
)
"""a mark of tables, headings and extended Markdown, a backslash that ends a line, a reference, code
in HTML, or a tag without the description of an image"""

_INLINE = re.compile(
    r"""(?x)
    `+[^`]*`+ | <[^<>]*>  # code, an address or a tag
    | (?:(?<!\w)\\[!-/:-@\[-`{}~] | \\[!-/:-@\[-`{}~](?!\w))  # an escape beside a word
    | (?<!\\)\*+ | ~~ | (?<!\w)_+ | _+(?!\w)  # emphasis
    # an image
    | !\[[^\[\]]*\](?:\((?:[^()\\]|\\.|\([^()]*\))*\)|\[[^\[\]]*\])
    # the ends of a link
    | \[ | \](?: \((?:[^()\\]|\\.|\([^()]*\))*\) | \[[^\[\]]*\] )?
    | \Z
    """
)
"""matches inline markup, and the end of the text"""
_IS_WORD = re.compile(r"(?s)(\s*)([*_~]*[`!\[].*[`\])][*_~]*)(\s*)")
"""matches code or an image, which is a word, and the spaces around it"""
_IN_WORD = re.compile(r"\w(?:\*+|~~)\w")
"""finds emphasis inside a word. The translation may have no word with the same parts."""
_WITHOUT_TEXT = re.compile(r"`[^`]*`|\([^()]*\)|<[^<>]*>")
"""matches code, an address or a tag, whose spaces say nothing about the text beside it"""


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
            pieces = _split(_SOFT_BREAK.sub(" ", text))
            yield Text(start, stop, join_texts(pieces[1:-1], keeps_space=True))


def _markup(text: str) -> list[str]:
    """Return the markup of a text, sorted; a translation must have equal markup."""
    return sorted(_MARKUP.findall(f"{text}\n{_parser().render(text)}"))


def _split(text: str) -> list[str]:
    """Return inline markup and texts in turn (`split_texts`)."""
    return split_texts(text, ((match, True) for match in _INLINE.finditer(text)))


def _fill(translation: str, gaps: Sequence[str]) -> str:
    """Return a translation with inline markup in place of its marks. Spaces beside a mark are
    removed where the markup has a space. Otherwise only the space inside emphasis or a link is
    removed. Spaces beside code or an image follow the translation. Raises ValueError if the
    translation has other marks."""
    new = ""
    opened: set[str] = set()
    for gap, piece in zip(gaps, [*MARK.split(translation), ""], strict=True):
        word = _IS_WORD.fullmatch(gap)
        if word:
            before = re.sub(r"(?<=[\w,.;:!?])$|\s+$", " ", new + word[1])
            after = re.sub(r"^\s+(?=[,.;:!?)])", "", word[3] + piece)
            new = before + word[2] + re.sub(r"^\s*(?=\w)", " ", after)
            continue
        has_space = re.search(r"\s", _WITHOUT_TEXT.sub("", gap))
        is_start = False
        for mark in filter(None, _INLINE.findall(gap)):
            is_start = mark.endswith("[") or (mark[0] in "*_~" and mark not in opened)
            opened ^= {mark}
        if has_space or not is_start:
            new = new.rstrip()
        if has_space or is_start:
            piece = piece.lstrip()
        new += gap + piece
    return new


def encode(translation: str, original: str) -> str:
    """Return a translation with inline markup in place of its marks, or the original with its line
    breaks if the translation is equal. Raises ValueError if marks are lost, if the translation has
    other markup, if markup is inside a word, or if the original is empty."""
    text = _SOFT_BREAK.sub(" ", original)
    pieces = _split(text)
    if translation.split() == join_texts(pieces[1:-1]).split():
        return original
    new = _fill(translation, pieces[::2])
    if _markup(new) != _markup(text) or _IN_WORD.search(text):
        raise ValueError("other markup, or markup inside a word")
    return new
