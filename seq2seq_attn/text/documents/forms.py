"""The forms of documents that `translate` reads."""

from importlib import import_module
from typing import cast

from seq2seq_attn.text.documents.base import Form

FORMS = {
    "srt": "subtitles",
    "vtt": "subtitles",
    "jsonl": "json_lines",
    "ndjson": "json_lines",
    "html": "web_pages",
    "htm": "web_pages",
    "xhtml": "web_pages",
    "xlf": "units",
    "xliff": "units",
    "tmx": "units",
    "po": "catalogues",
    "pot": "catalogues",
    "csv": "columns",
    "tsv": "columns",
    "md": "markdown",
}
"""the module of a form by the suffix of the file"""
WITH_FIELDS = ("jsonl", "ndjson", "csv", "tsv")
"""the suffixes of forms whose texts are in one field"""


def load_form(suffix: str) -> Form:
    """Return the form of the documents with this suffix, a key of `FORMS`."""
    return cast(Form, import_module(f"{__package__}.{FORMS[suffix]}"))
