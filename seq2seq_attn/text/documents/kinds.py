"""Recognize documents, so that their markup is not read as lines of text."""

import re
from typing import NamedTuple


class Kind(NamedTuple):
    """A kind of document."""

    name: str
    suffixes: tuple[str, ...]
    pattern: re.Pattern[str] = re.compile(r"(?!)")
    """a pattern that is found in the first characters of such documents only. The default pattern
    is never found"""


SUBTITLES = Kind(
    "subtitles",
    ("srt", "vtt", "ass", "ssa", "sub"),
    re.compile(r"(?m)^\s*[\d:]+[,.]\d+ *--> *[\d:]+"),
)
CATALOGUE = Kind("a PO catalogue", ("po", "pot"), re.compile(r'(?m)^msgid[ \t]+"'))
XML = Kind(
    "XML",
    ("xml", "tmx", "xlf", "xliff", "sdlxliff", "html", "htm", "xhtml", "resx"),
    re.compile(r"(?i)\A\s*<(\?xml|!doctype|html|tmx|xliff|\w*set\b|doc\b)"),
)
JSON = Kind(
    "JSON",
    ("json", "jsonl", "ndjson", "arb"),
    re.compile(r'\A\s*(\{\s*"|\[\s*[\[{"])'),
)
_KINDS = (
    SUBTITLES,
    CATALOGUE,
    XML,
    JSON,
    Kind("Markdown or TeX", ("md", "markdown", "rst", "tex")),
    Kind("a file of settings", ("yaml", "yml", "toml", "properties", "strings", "ftl")),
    Kind("an office document", ("docx", "doc", "odt", "pptx", "xlsx", "rtf", "pdf")),
    Kind("a table", ("csv", "tsv", "tab")),
)


def kind_by_suffix(suffix: str) -> Kind | None:
    """Return the kind of document to which a suffix belongs, or None."""
    return next((kind for kind in _KINDS if suffix in kind.suffixes), None)


def kind_by_content(head: str) -> Kind | None:
    """Return the kind of document with these first characters, or None for lines of text."""
    for kind in _KINDS:
        if kind.pattern.search(head):
            return kind
    return None
