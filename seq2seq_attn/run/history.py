"""The history of a training run: the validations in its `metrics.jsonl`."""

import json
from typing import Any

Validation = tuple[int, float | None, float | None]
"""(update, BLEU, perplexity); None for a value that was not measured"""
_MAX_SHOWN = 1e12
"""Larger values count as missing. Only a run that has diverged has such a perplexity."""


def parse_validations(content: bytes) -> list[Validation]:
    """Return the validations in the content of `metrics.jsonl`, ordered by update. Lines that are
    not validations are skipped, because the file may come from an untrusted source."""
    by_update = {}
    for line in content.splitlines():
        if b"validation" not in line:
            continue
        try:
            values = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if not isinstance(values, dict) or values.get("event") != "validation":
            continue
        update = _read_number(values, "update")
        if update is not None:
            bleu = _read_number(values, "bleu")
            perplexity = _read_number(values, "perplexity")
            by_update[update] = (int(update), bleu, perplexity)
    return [by_update[update] for update in sorted(by_update)]


def _read_number(values: dict[str, Any], name: str) -> float | None:
    """Return a value if it is a number from 0 up to the limit. Return None if it is missing, has
    another type, is negative or is too large."""
    value = values.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if 0 <= value < _MAX_SHOWN else None
