"""The forms of documents that `translate` reads."""

from seq2seq_attn.text.documents.json_lines import JSON_LINES
from seq2seq_attn.text.documents.subtitles import SUBTITLES

FORMS = {"srt": SUBTITLES, "vtt": SUBTITLES, "jsonl": JSON_LINES, "ndjson": JSON_LINES}
"""the forms by the suffix of their files"""
WITH_FIELDS = ("jsonl", "ndjson")
"""forms whose texts are in a field"""
