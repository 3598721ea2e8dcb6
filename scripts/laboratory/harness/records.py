"""Records of measurements: JSON files with the environment that they were measured in."""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from seq2seq_attn.config.load import parse_setting
from seq2seq_attn.errors import UserError
from seq2seq_attn.files import read_json
from seq2seq_attn.runtime.environment import describe_environment

if TYPE_CHECKING:
    import torch

ROOT = Path(__file__).resolve().parents[3]
SPEED = ROOT / "docs" / "speed"
RECORDS = ROOT / "docs" / "records"
Record = dict[str, Any]
TRAINING_KEYS = ("minutes", "update", "epoch", "best_score", "best_update")


def exit_code(main: Callable[[], int | None]) -> int:
    """Run `main`. A `UserError` becomes one line on stderr, as in the `seq2seq` command; Ctrl-C
    gives 130."""
    try:
        return main() or 0
    except KeyboardInterrupt:
        return 130
    except UserError as error:
        print(f"error: {error}", file=sys.stderr)
        return error.exit_code


def describe(script: str, device: torch.device | str = "cpu") -> Record:
    """The environment and the command, with absolute paths cut to their last part."""
    arguments = [
        Path(argument).name if argument.startswith("/") else argument for argument in sys.argv[1:]
    ]
    return describe_environment([script, *arguments], device)


def short_commit(environment: Record) -> str:
    """The commit that an environment names, as twelve digits."""
    git = environment.get("git") or {}
    return (git.get("commit") or "unknown")[:12]


def add_set_option(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--set",
        type=parse_setting,
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="settings, as for seq2seq train",
    )


def set_arguments(settings: Mapping[str, Any]) -> list[str]:
    """Settings as arguments of `seq2seq train` and `seq2seq prepare`."""
    arguments = []
    for key, value in settings.items():
        arguments += ["--set", f"{key}={json.dumps(value)}"]
    return arguments


def load_records(folder: Path) -> dict[str, Record]:
    """All records of a folder, by the name of the file."""
    return {path.stem: read_json(path) for path in sorted(folder.glob("*.json"))}


def read_events(folder: Path) -> list[Record]:
    """The events of a run so far, from `metrics.jsonl`, without a line that is being written."""
    path = folder / "metrics.jsonl"
    lines = path.read_text(encoding="utf-8").split("\n")[:-1] if path.is_file() else []
    return [json.loads(line) for line in lines]


def read_training(folder: Path) -> Record:
    """Minutes, updates and epochs of a finished training run, and whether it made all of them
    (`is_finished`); its number of parameters and its precision, which only the log holds.

    Raises:
        UserError: the log lacks them.
    """
    finished, log_path = read_json(folder / "finished.json"), folder / "train.log"
    text = log_path.read_text(encoding="utf-8")
    parameters = re.search(r"(\d+) parameters, ", text)
    precision = re.search(r"torch \S+ on .*, (\w+)$", text, re.MULTILINE)
    if parameters is None or precision is None:
        raise UserError(f"{log_path}: no number of parameters or no precision; train the run again")
    return {
        **{key: finished[key] for key in TRAINING_KEYS},
        "is_finished": str(finished["reason"]).startswith(
            ("train.max_epochs=", "train.max_updates=")
        ),
        "num_parameters": int(parameters[1]),
        "precision": precision[1],
    }
