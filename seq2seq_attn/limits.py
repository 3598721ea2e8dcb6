"""Limits that the configuration checks and that help texts show. No imports, so that help is fast."""

from __future__ import annotations

MAX_BEAM_SIZE = 1_000
"""more hypotheses per sentence exceed the memory without improving BLEU"""
MAX_SAMPLES = 10_000
"""per sentence; they are drawn at once"""
MAX_LENGTH_PENALTY = 10.0
"""of either sign"""
MAX_LENGTH_RATIO = 1_000.0
"""target tokens per source token"""
