"""Evaluation and translation with little work: few resamples, no GPU, one run or several."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import seq2seq_attn
from seq2seq_attn.api.translate import translate_lines
from seq2seq_attn.metrics.significance import Resampling
from seq2seq_attn.report.pages import Report

QUICK = Resampling(num_resamples=50, num_trials=50)


def evaluate(runs: Sequence[str | Path], **options: Any) -> Report:
    """Evaluate with the options of `seq2seq_attn.evaluate`."""
    return seq2seq_attn.evaluate(runs, **{"resampling": QUICK, "device": "cpu", **options})


def run_evaluate(folder: Path, *names: str, **options: Any) -> Report:
    """Evaluate runs that lie in a folder."""
    return evaluate([folder / name for name in names], **options)


def translate_and_score(folder: Path, *names: str, **options: Any) -> Report:
    """Evaluate runs by BLEU alone, for tests of files."""
    return run_evaluate(folder, *names, **{"metric": ["bleu"], "no_attention": True, **options})


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
    translate_lines(
        texts, **{"device": "cpu", "input": input or [], **lists, **options}, output=str(output)
    )
