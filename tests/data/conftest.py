"""Corpora of a few pairs in files."""

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

PairWriter = Callable[[str, Sequence[tuple[str, str]]], str]


@pytest.fixture
def write_pairs(tmp_path: Path) -> PairWriter:
    """Writes German-English pairs as two files and returns their prefix."""

    def write(name: str, pairs: Sequence[tuple[str, str]]) -> str:
        for side, language in enumerate(("de", "en")):
            text = "".join(f"{pair[side]}\n" for pair in pairs)
            (tmp_path / f"{name}.{language}").write_text(text, encoding="utf-8", newline="\n")
        return str(tmp_path / name)

    return write
