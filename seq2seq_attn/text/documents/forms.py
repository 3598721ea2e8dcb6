"""The forms of documents that `translate` reads."""

from importlib import import_module

from seq2seq_attn.text.documents.base import Form

_SUFFIXES = """
subtitles srt vtt
json_lines jsonl ndjson
web_pages html htm xhtml
units xlf xliff tmx
catalogues po pot
columns csv tsv
markdown md
"""
FORMS: dict[str, str] = {}
"""the module of a form by the suffix of the file"""
for _line in _SUFFIXES.strip().splitlines():
    _module, *_suffixes = _line.split()
    FORMS |= dict.fromkeys(_suffixes, _module)
WITH_FIELDS = ("jsonl", "ndjson", "csv", "tsv")
"""the suffixes of forms whose texts are in one field"""


def load_form(suffix: str) -> Form:
    """Return the form of the documents with this suffix, a key of `FORMS`."""
    form: Form = import_module(f"{__package__}.{FORMS[suffix]}").FORM
    return form
