"""`translate` with one run or several, and one input file or several."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from seq2seq_attn.cli.translation import translate_lines


def translate(
    texts: Sequence[str] = (),
    *,
    run: Path | None = None,
    input: str | Path | Sequence[str] | None = None,
    attention: str | Path | None = None,
    output: str | Path = "-",
    **options: Any,
) -> None:
    """Translate by one run, from one file, with one file of attention."""
    if isinstance(input, str | Path):
        input = [str(input)]
    one = {"run": run, "attention": attention and Path(attention)}
    lists = {name: [value] for name, value in one.items() if value is not None}
    translate_lines(texts, **{"device": "cpu", "input": input or [], **lists, **options}, output=str(output))
