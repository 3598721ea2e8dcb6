"""The forms of documents that `translate` reads."""

from seq2seq_attn.text.documents.catalogues import CATALOGUES
from seq2seq_attn.text.documents.columns import TABLES
from seq2seq_attn.text.documents.json_lines import JSON_LINES
from seq2seq_attn.text.documents.markdown import MARKDOWN
from seq2seq_attn.text.documents.subtitles import SUBTITLES
from seq2seq_attn.text.documents.units import UNITS
from seq2seq_attn.text.documents.web_pages import HTML

FORMS = {
    "srt": SUBTITLES,
    "vtt": SUBTITLES,
    "jsonl": JSON_LINES,
    "ndjson": JSON_LINES,
    "html": HTML,
    "htm": HTML,
    "xhtml": HTML,
    "xlf": UNITS,
    "xliff": UNITS,
    "tmx": UNITS,
    "po": CATALOGUES,
    "pot": CATALOGUES,
    "csv": TABLES,
    "tsv": TABLES,
    "md": MARKDOWN,
}
"""the form of a document by the suffix of the file"""
WITH_FIELDS = ("jsonl", "ndjson", "csv", "tsv")
"""the suffixes of forms whose texts are in one field"""
