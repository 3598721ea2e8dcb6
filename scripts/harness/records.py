"""Records of measurements: JSON files with the environment that they were measured in.

Importing this needs the standard library only, and so do reading records and making pages of them.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from seq2seq_attn.files import read_json
from seq2seq_attn.runtime.environment import describe_environment

if TYPE_CHECKING:
    import torch

    from scripts.harness.turns import Ratio

ROOT = Path(__file__).resolve().parents[2]
SPEED = ROOT / "docs" / "speed"
RECORDS = ROOT / "docs" / "records"
Record = dict[str, Any]
TRAINING_KEYS = ("minutes", "update", "epoch", "best_score", "best_update")


def describe(script: str, device: torch.device | str = "cpu") -> Record:
    """The environment, with the command; of an absolute path it keeps the last part."""
    arguments = [Path(argument).name if argument.startswith("/") else argument for argument in sys.argv[1:]]
    return describe_environment([script, *arguments], device)


def load_records(folder: Path) -> dict[str, Record]:
    """All records of a folder, by the name of the file."""
    return {path.stem: read_json(path) for path in sorted(folder.glob("*.json"))}


def options_of(options: argparse.Namespace) -> Record:
    """The command line as values that JSON can hold."""
    return {key: json.loads(json.dumps(value, default=str)) for key, value in vars(options).items()}


def ratio_fields(ratios: Mapping[str, Ratio]) -> Record:
    """Paired ratios as a row of a record holds them."""
    return {
        "ratios": {name: ratio.value for name, ratio in ratios.items()},
        "intervals": {name: [ratio.low, ratio.high] for name, ratio in ratios.items()},
    }


def read_training(folder: Path) -> Record:
    """Minutes, updates and epochs of a finished training run."""
    finished = read_json(folder / "finished.json")
    return {key: finished.get(key) for key in TRAINING_KEYS}


def read_log(path: Path) -> Record:
    """Facts about a run that only its training log holds."""
    text = path.read_text(encoding="utf-8")
    parameters = re.search(r"(\d+) parameters, ", text)
    precision = re.search(r"torch \S+ on .*, (\w+)$", text, re.MULTILINE)
    return {
        "num_parameters": int(parameters[1]) if parameters else None,
        "precision": precision[1] if precision else None,
    }
