"""Keep the part of an evaluation that the pages need as docs/records/NAME.json.

    scripts/lab record NAME REPORT.json [validation|published elsewhere]

The last argument says what the settings were chosen on; the pages refuse scores of Multi30k's test sets without it.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import get_args

from scripts.laboratory.experiment import ChosenOn
from scripts.laboratory.harness.records import RECORDS, ROOT, Record, read_training
from scripts.laboratory.harness.runs import minutes_before
from seq2seq_attn.errors import UsageError
from seq2seq_attn.files import read_json, write_json

FORMAT_KEYS = ("format", "format_version")


def main(arguments: Sequence[str]) -> None:
    """Write the record of a report.

    Raises:
        UsageError: unknown arguments, or the report has an ensemble.
    """
    match arguments:
        case [name, report, *chosen_on] if not chosen_on or " ".join(chosen_on) in get_args(ChosenOn):
            path = Path(report)
        case _:
            expected = " or ".join(filter(None, get_args(ChosenOn)))
            raise UsageError(f"{' '.join(arguments)}: expected NAME REPORT.json [{expected}]")
    write_json(RECORDS / f"{name}.json", record_of(name, path, " ".join(chosen_on)))


def record_of(name: str, report_path: Path, chosen_on: str) -> Record:
    """The part of a report that a record keeps.

    Raises:
        UsageError: the report has an ensemble.
    """
    report = read_json(report_path)
    if ensembles := [run["name"] for run in report["runs"] if "training_environment" not in run]:
        raise UsageError(f"{report_path}: {ensembles[0]} is an ensemble; a record is of single runs")
    return {
        "name": name,
        **({"chosen_on": chosen_on} if chosen_on else {}),
        "runs": [_run(run) for run in report["runs"]],
        "languages": [report["languages"]["source"], report["languages"]["target"]],
        "length": report["length"],
        "sets": report["sets"],
    }


def _run(run: Record) -> Record:
    environment, path = run["training_environment"] or {}, ROOT / run["path"]
    git, training = environment.get("git") or {}, read_training(path)
    training["minutes"] += minutes_before(path)
    return {
        **{key: run[key] for key in ("name", "config", "attention", "seed", "lowercases", "search")},
        "best": {key: value for key, value in run["model"].items() if key not in FORMAT_KEYS},
        "training": training,
        "hardware": environment.get("device_name"),
        "num_threads": environment.get("num_threads"),
        "commit": git.get("commit"),
        "is_dirty": git.get("is_dirty"),
        "torch": environment.get("packages", {}).get("torch"),
        "python": environment.get("python"),
        "date": environment.get("written_at"),
    }
