"""Subtitles in SRT and WebVTT. The lines of a cue are one text, unless each speaker has a line."""

import re
from collections.abc import Iterator
from textwrap import wrap

from seq2seq_attn.text.documents.base import Form, Text
from seq2seq_attn.text.documents.placeholders import TAG

_WIDTH = 42
"""number of characters in a line of a cue, by the usual guidelines for subtitles"""
_LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n|\Z)")
_BREAK = re.compile(r"\r\n|\r|\n")
_START = re.compile(rf"(?:{TAG.pattern}|\s|[-–—])*")
"""dashes, tags and spaces before a text"""
_BEGINS_TEXT = re.compile(rf"\s*(?:[-–—]|{TAG.pattern})")


def find_texts(document: str, field: str = "") -> Iterator[Text]:
    """Yield the texts of subtitles. A blank line ends a cue in WebVTT, but not in SRT."""
    is_vtt = "WEBVTT" in document[:7]
    lines = list(_LINE.finditer(document))
    is_in_cue = False
    start = stop = 0
    for line, follower in zip(lines, [*lines[1:], None], strict=True):
        is_time = "-->" in line[0]
        is_number = follower and "-->" in follower[0] and line[0].strip().isdigit()
        is_text = is_in_cue and line[0].strip() and not is_time and not is_number
        if start < stop and not (is_text and not _BEGINS_TEXT.match(line[0])):
            yield _text(document, start, stop)
            start = stop
        if is_text:
            start = start if start < stop else line.start()
            stop = line.end()
        elif is_time or is_vtt:
            is_in_cue = is_time


def _text(document: str, start: int, stop: int) -> Text:
    """Return the text of some lines, without what encloses it."""
    enclosing = _START.match(document, start, stop)
    assert enclosing is not None  # the pattern may be empty
    start = enclosing.end()
    content = document[start:stop].rstrip()
    while content.endswith((">", "}")):
        tag = max(content.rfind("<"), content.rfind("{"))
        if tag < 0 or not TAG.fullmatch(content, tag):
            break
        content = content[:tag].rstrip()
    return Text(start, start + len(content), " ".join(content.splitlines()))


def encode(translation: str, original: str) -> str:
    """Return a translation with line breaks if the original has some."""
    if translation.split() == original.split():
        return original
    line_break = _BREAK.search(original)
    return line_break[0].join(wrap(translation, _WIDTH)) if line_break else translation


SUBTITLES = Form(find_texts, encode)
