"""Records of measurements: JSON files with the environment that they were measured in.

Importing this needs the standard library only, and so do reading records and making pages of them.
"""

from __future__ import annotations

import argparse
import json
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


def describe(script: str, device: torch.device | str = "cpu") -> Record:
    """The environment, with the command as the user typed it."""
    return describe_environment([script, *sys.argv[1:]], device)


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
