"""Keep the part of an evaluation that the pages need as docs/records/NAME.json, with its plots.

    scripts/lab record NAME REPORT.json [validation|published elsewhere]
    scripts/lab record --add NAME REPORT.json

The last argument says what the settings were chosen on; the pages refuse scores of Multi30k's test sets without it.
`--add` adds the run of an evaluation, another seed, to a record of the same configuration, test sets and metrics.
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any, get_args

from scripts.laboratory.experiment import ChosenOn
from scripts.laboratory.harness.records import RECORDS, ROOT, Record, read_training
from scripts.laboratory.harness.runs import minutes_before
from seq2seq_attn.errors import UsageError
from seq2seq_attn.files import read_json, write_json
from seq2seq_attn.report.files import plot_path

PLOTS = ROOT / "docs" / "plots"
FORMAT_KEYS = ("format", "format_version")


def main(arguments: Sequence[str]) -> None:
    """Write or extend a record.

    Raises:
        UsageError: unknown arguments, or as `record_of` and `add_seed`.
    """
    match arguments:
        case ["--add", name, report]:
            add_seed(name, Path(report))
        case [name, report, *chosen_on] if not chosen_on or " ".join(chosen_on) in get_args(ChosenOn):
            keep_scores(name, Path(report), " ".join(chosen_on))
        case _:
            expected = " or ".join(filter(None, get_args(ChosenOn)))
            raise UsageError(f"{' '.join(arguments)}: expected [--add] NAME REPORT.json [{expected}]")


def keep_scores(name: str, report_path: Path, chosen_on: str) -> None:
    """Write the record of a report, and copy its plots."""
    write_json(RECORDS / f"{name}.json", record_of(name, report_path, chosen_on))
    for kind in ("bleu", "retention"):
        plot, kept = plot_path(report_path, kind), PLOTS / f"{name}-{kind}.png"
        if plot.exists():
            shutil.copyfile(plot, kept)
        else:
            kept.unlink(missing_ok=True)


def add_seed(name: str, report_path: Path) -> None:
    """Add the run of a report to a record.

    Raises:
        UsageError: the seed is in the record, or something else than the seed differs.
    """
    path = RECORDS / f"{name}.json"
    record = read_json(path)
    added = record_of(name, report_path, record.get("chosen_on", ""))
    configs = {run["config"] for run in (*record["runs"], *added["runs"])}
    if len(configs) > 1 or {run["seed"] for run in record["runs"]} & {run["seed"] for run in added["runs"]}:
        raise UsageError(f"{report_path}: expected another seed of {record['runs'][0]['config']}")
    write_json(path, _merge(record, added, report_path))


def _merge(record: Any, added: Any, path: Path) -> Any:
    """Equal values, with the lists of runs one after the other."""
    if isinstance(record, dict) and record.keys() == added.keys():
        return {
            key: value + added[key] if key in ("runs", "translations") else _merge(value, added[key], path)
            for key, value in record.items()
        }
    if isinstance(record, list) and len(record) == len(added):
        return [_merge(value, other, path) for value, other in zip(record, added, strict=True)]
    if record != added:
        raise UsageError(f"{path}: it differs from the record in more than its run: {added}, not {record}")
    return record


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
