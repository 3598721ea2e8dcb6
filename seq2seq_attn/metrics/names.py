"""Names of metrics and of lengths. Nothing is imported, so that the command line can list them in its help."""

from __future__ import annotations

from typing import Literal

MeasureName = Literal["bleu", "bleu_lowercase", "bleu_tutorial", "chrf", "ter", "exact", "cer", "wer"]
"""a row of the table in `bleu.py` each"""
DEFAULT_MEASURES: tuple[MeasureName, ...] = ("bleu", "bleu_lowercase", "bleu_tutorial", "chrf")
LengthOf = Literal["source", "reference"]
LengthIn = Literal["tokens", "characters"]
