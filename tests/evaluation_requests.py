"""Evaluation with few resamples and no GPU."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import seq2seq_attn
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
