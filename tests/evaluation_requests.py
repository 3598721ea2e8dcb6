"""Evaluation with every option under one name, few resamples and no GPU."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

from seq2seq_attn.cli.evaluation import evaluate_runs
from seq2seq_attn.config import SearchConfig
from seq2seq_attn.evaluation.scores import Resampling
from seq2seq_attn.evaluation.scoring import Settings
from seq2seq_attn.evaluation.systems import Decoding
from seq2seq_attn.report.files import ReportFiles
from seq2seq_attn.report.pages import Report

QUICK = Resampling(num_resamples=50, num_trials=50)
_PARTS = {"settings": Settings, "decoding": Decoding, "files": ReportFiles}


def evaluate(runs: Sequence[str | Path], **options: Any) -> Report:
    """Each option goes to the part of the options that knows it."""
    options = {"resampling": QUICK, "device": "cpu"} | options
    options["search"] = {name: options.pop(name) for name in SearchConfig.model_fields.keys() & options.keys()}
    for part, kind in _PARTS.items():
        known = {field.name for field in fields(kind)} & options.keys()
        options[part] = kind(**{key: options.pop(key) for key in known})
    return evaluate_runs(runs, **options)


def run_evaluate(folder: Path, *names: str, **options: Any) -> Report:
    """Evaluate runs that lie in a folder."""
    return evaluate([folder / name for name in names], **options)
