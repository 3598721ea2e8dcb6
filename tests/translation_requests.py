"""`translate` with every option under one name."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from seq2seq_attn.cli.translation import translate_lines


def translate(
    texts: Sequence[str] = (),
    *,
    run: str | Path | Sequence[str | Path] | None = None,
    input: str | Path | None = None,
    **options: Any,
) -> None:
    """Translate by one run, or several."""
    if input is not None:
        options["inputs"] = [input]
    runs = [run] if isinstance(run, str | Path) else run or []
    translate_lines(texts, runs, **options)
