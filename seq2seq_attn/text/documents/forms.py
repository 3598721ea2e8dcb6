"""The forms of documents that `translate` reads."""

from seq2seq_attn.text.documents.subtitles import SUBTITLES

FORMS = {"srt": SUBTITLES, "vtt": SUBTITLES}
"""the forms by the suffix of their files"""
