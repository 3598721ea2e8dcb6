"""Subtitles in SRT and WebVTT. The lines of a cue are one text, unless each speaker has a line."""

import re
from collections.abc import Iterator
from textwrap import wrap

from seq2seq_attn.text.documents.base import Text
from seq2seq_attn.text.documents.markup import fill_marks, join_texts
from seq2seq_attn.text.documents.placeholders import TAG

_WIDTH = 42
"""number of characters in a line of a cue, by the usual guidelines for subtitles"""
_LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n|\Z)")
_TIMES = re.compile(r"[\s\ufeff-]*+\d[-\d:;.,\s]*-->")
_DAMAGED_TIMES = re.compile(
    r"""(?x).*-->
    |[\s\ufeff]*+\d+:[\d:;.,]*+
    (?:[^\w>→&]*+(?:&gt;|[>→])|(?<=\d\d:\d\d[.,:;]\d{3}))\W*+(?:\d|\Z)"""
)
"""matches a line with other signs beside `-->`, with another arrow, as in `0:1 -> 0:2`, or with
milliseconds at its start, but not a text such as `10:30 - 18:00` or `1:47.532`"""
_TEXT = re.compile(r"(?!(?:[ \t]*\d+[ \t]*(?:\r\n|\r|\n))?[^\r\n]*-->)[^\S\r\n]*\S")
"""matches a line that is not blank, has no time stamps and is not the number above time stamps"""
_TAGS = re.compile(rf"(\s*(?:{TAG.pattern})(?: *(?:{TAG.pattern}))*\s*)")
"""matches tags with nothing but spaces between them, and white space around them"""
_BREAK = re.compile(r"\r\n|\r|\n")
_BEFORE_TEXT = "-–— \t\r\n\f\xa0"
"""dashes and spaces before a text"""
_BEGINS_TEXT = re.compile(rf"\s*(?:[-–—]|{TAG.pattern})")
"""matches a line of another speaker, or a line that begins with a tag"""


def find_texts(document: str, languages: str) -> Iterator[Text]:
    """Yield the texts of subtitles. An empty line ends a cue in WebVTT, but not in SRT. Tags and
    spaces at the ends of a text do not belong to the text, nor do dashes before the text.

    Raises ValueError if a line of time stamps is damaged, or if the document has no time stamps.
    """
    is_vtt = "WEBVTT" in document[:7]
    has_times = is_in_cue = False
    start = stop = 0
    for number, line in enumerate(_LINE.finditer(document), 1):
        is_time = _TIMES.match(line[0]) is not None
        if not is_time and _DAMAGED_TIMES.match(line[0]):
            raise ValueError(f"expected times with --> in line {number}")
        has_times = has_times or is_time
        is_text = is_in_cue and _TEXT.match(document, line.start())
        # Does the text before this line end here?
        if start < stop and (not is_text or _BEGINS_TEXT.match(line[0])):
            # Tags count as spaces.
            bare = TAG.sub(lambda tag: " " * len(tag[0]), document[start:stop]).rstrip()
            end = start + len(bare)
            start = end - len(bare.lstrip(_BEFORE_TEXT))
            yield Text(start, end, join_texts(_TAGS.split(document[start:end])))
            start = stop
        if is_text:
            if start >= stop:
                start = line.start()
            stop = line.end()
        elif is_time or (is_vtt and not line[0].strip("\r\n")):
            is_in_cue = is_time
    if not has_times:
        raise ValueError("no line of times with -->")


def encode(translation: str, original: str) -> str:
    """Return a translation with the tags of the original. If the original has line breaks, the
    translation is wrapped."""
    if translation == join_texts(_TAGS.split(original)):
        return original
    line_break = _BREAK.search(original)
    # With NUL in place of spaces, `wrap` does not break lines inside a tag.
    gaps = [""]
    for gap in _TAGS.findall(original):
        tags = gap.strip()
        gaps.append(gap.replace(tags, tags.replace(" ", "\0")))
    new = fill_marks(translation, [*gaps, ""])
    if line_break:
        lines = wrap(new, _WIDTH, break_long_words=False, break_on_hyphens=False)
        new = line_break[0].join(lines)
    return new.replace("\0", " ")
