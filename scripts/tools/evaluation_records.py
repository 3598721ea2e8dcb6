"""Records of evaluations: the part of a report that the pages of `scripts/results` need."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from scripts.laboratory.harness.records import RECORDS, ROOT, Record, read_training
from scripts.laboratory.harness.runs import minutes_before
from scripts.tools import levers
from seq2seq_attn.errors import UsageError
from seq2seq_attn.files import read_json, write_json
from seq2seq_attn.report.files import plot_path
from seq2seq_attn.run_dir import RunDir

PLOTS = ROOT / "docs" / "plots"
FORMAT_KEYS = ("format", "format_version")


def keep_scores(name: str, report_path: Path, chosen_on: str) -> None:
    """Keep the part of a report that a reader needs: scores with signatures, sizes, settings, where and when.

    Raises:
        UsageError: `chosen_on` is neither empty nor one of `levers.CHOSEN_ON`, or as `record_of`.
    """
    if chosen_on and chosen_on not in levers.CHOSEN_ON:
        raise UsageError(f"{chosen_on!r}: expected {' or '.join(levers.CHOSEN_ON)}")
    value = record_of(name, report_path, chosen_on)
    write_json(RECORDS / f"{name}.json", value)
    for kind in ("bleu", "retention"):
        plot = plot_path(report_path, kind)
        if plot.exists():
            PLOTS.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(plot, PLOTS / f"{name}-{kind}.png")
        elif (former := PLOTS / f"{name}-{kind}.png").exists():
            former.unlink()


def add_seed(name: str, report_path: Path) -> None:
    """Add the run of an evaluation to a record of the same configuration, test sets and measures.

    Raises:
        UsageError: the seed is in the record, or something else than the seed differs.
    """
    path = RECORDS / f"{name}.json"
    record = read_json(path)
    added = record_of(name, report_path, record.get("chosen_on", ""))
    configs = {run["config"] for run in (*record["runs"], *added["runs"])}
    if len(configs) > 1 or {run["seed"] for run in record["runs"]} & {run["seed"] for run in added["runs"]}:
        raise UsageError(f"{report_path}: expected another seed of {record['runs'][0]['config']}")
    write_json(path, _joined(record, added, report_path))


def _joined(record: Any, added: Any, path: Path) -> Any:
    """Equal values, with the lists of runs one after the other."""
    if isinstance(record, dict) and record.keys() == added.keys():
        return {
            key: value + added[key] if key in ("runs", "translations") else _joined(value, added[key], path)
            for key, value in record.items()
        }
    if isinstance(record, list) and len(record) == len(added):
        return [_joined(one, other, path) for one, other in zip(record, added, strict=True)]
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
    runs = []
    for run in report["runs"]:
        environment, path = run["training_environment"] or {}, ROOT / run["path"]
        training = read_training(path)
        training["minutes"] += minutes_before(RunDir(path))
        runs.append(
            {
                "name": run["name"],
                "config": run["config"],
                "attention": run["attention"],
                "seed": run["seed"],
                "lowercases": run["lowercases"],
                "search": run["search"],
                "best": {key: value for key, value in run["model"].items() if key not in FORMAT_KEYS},
                "training": training,
                "hardware": environment.get("device_name"),
                "num_threads": environment.get("num_threads"),
                "commit": (environment.get("git") or {}).get("commit"),
                "is_dirty": (environment.get("git") or {}).get("is_dirty"),
                "torch": environment.get("packages", {}).get("torch"),
                "python": environment.get("python"),
                "date": environment.get("written_at"),
            }
        )
    return {
        "name": name,
        **({"chosen_on": chosen_on} if chosen_on else {}),
        "runs": runs,
        "languages": [report["languages"]["source"], report["languages"]["target"]],
        "length": report["length"],
        "sets": report["sets"],
    }
