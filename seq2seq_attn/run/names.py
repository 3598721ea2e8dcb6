"""The names of the files and folders of a run directory."""

from seq2seq_attn.config.load import RUN_CONFIG
from seq2seq_attn.data.store import RUN_CORPUS
from seq2seq_attn.files import MANIFEST
from seq2seq_attn.text.known_words import WORDS

MODEL = "model.safetensors"
FINISHED = "finished.json"
ENVIRONMENT = "environment.json"
METRICS = "metrics.jsonl"
LOG = "train.log"
LAST = "last"
HYPS = "hyps"
LINES = "lines"
"""key of the facts about lines in `RUN_CORPUS`"""
REVERSE = "reverse"
LOCK = ".train.lock"
"""This file is locked while training writes to the run. It is never removed."""
SETS = "sets"
APPENDED = (LOG, METRICS, LOCK, LAST, SETS, REVERSE)
"""Training appends to these files, or writes in these folders. Every other file is replaced as a
whole."""
TEXT_FILES = ("*.tokenizer.json", "*.sentencepiece.model", "*.vocab", WORDS)
LISTED = (RUN_CONFIG, MODEL, FINISHED, ENVIRONMENT, RUN_CORPUS, *TEXT_FILES)
"""patterns of the files that the manifest lists"""
RUN_FILES = (
    *LISTED,
    MANIFEST,
    LOG,
    METRICS,
    LAST,
    SETS,
    HYPS,
    REVERSE,
    "report.json",
    "report.md",
    "report.*.json",
    "report.*.md",
    "*-by-length*.png",
    "*-by-length*.svg",
    "*-by-length*.pdf",
    "events.out.tfevents.*",
    ".*.tmp",
)
"""All files that a run writes. `--overwrite` removes these files and no others."""
