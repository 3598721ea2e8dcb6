"""Limits that the configuration checks and the help of the commands shows. No imports: help must answer at once."""

from __future__ import annotations

MAX_BEAM_SIZE = 1_000
"""more hypotheses per sentence exceed the memory without improving BLEU"""
MAX_LENGTH_PENALTY = 10.0
"""of either sign"""
MAX_LENGTH_RATIO = 1_000.0
"""target tokens per source token"""
