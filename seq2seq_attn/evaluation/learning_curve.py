"""The learning curve of a run: the validations of its training."""

from __future__ import annotations

import json
import logging
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from seq2seq_attn.files import open_regular

MAX_BYTES = 64 * 2**20
"""A longer `metrics.jsonl` is not read. The quickstart's has 2 KiB per validation, so this is some 30,000 of them."""
_LIMIT = 1e12
"""Larger values count as missing: only a diverged run has such a perplexity."""

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Validation:
    """The scores of one validation; None: not measured."""

    update: int
    bleu: float | None
    perplexity: float | None


def read_validations(path: Path) -> list[Validation]:
    """The validations in a run's `metrics.jsonl`, by update; none where the file is missing. Lines that are not
    validations are skipped, as the file may be untrusted."""
    try:
        with open_regular(path) as stream:
            content = stream.read(MAX_BYTES + 1)
    except FileNotFoundError:
        return []
    except OSError as error:
        log.warning("%s: cannot be read (%s); the run has no learning curve", path, error.strerror)
        return []
    if len(content) > MAX_BYTES:
        log.warning("%s: larger than %d MB; the run has no learning curve", path, MAX_BYTES // 2**20)
        return []
    parsed = [_validation(line) for line in content.splitlines() if b"validation" in line]
    by_update = {validation.update: validation for validation in parsed if validation is not None}
    return [by_update[update] for update in sorted(by_update)]


def _validation(line: bytes) -> Validation | None:
    with suppress(ValueError, RecursionError, AttributeError):
        values = json.loads(line)
        update, bleu, perplexity = (_number(values.get(key)) for key in ("update", "bleu", "perplexity"))
        if values.get("event") == "validation" and update is not None:
            return Validation(int(update), bleu, perplexity)
    return None


def _number(value: Any) -> float | None:
    """The number if a chart can show it, else None."""
    return float(value) if type(value) in (int, float) and 0 <= value < _LIMIT else None
