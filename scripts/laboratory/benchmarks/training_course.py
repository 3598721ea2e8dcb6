"""Read the learning curve of a training run from its metrics.jsonl."""

from __future__ import annotations

import json
import statistics
from pathlib import Path

from scripts.laboratory.harness.records import Record


def read_events(run_dir: Path) -> list[Record]:
    """The run's events so far, without a line that is being written."""
    path = run_dir / "metrics.jsonl"
    if not path.is_file():
        return []
    lines = path.read_text(encoding="utf-8").split("\n")[:-1]
    return [json.loads(line) for line in lines]


def summarize(events: list[Record], targets: list[float]) -> Record:
    """When each target was first reached, the course of validation, the speed."""
    validations = [event for event in events if event["event"] == "validation"]
    course = [{"minutes": event["elapsed_s"] / 60, "bleu": event["bleu"]} for event in validations]
    reached = {
        f"{target:g}": next((one["minutes"] for one in course if one["bleu"] >= target), None) for target in targets
    }
    speeds = [event["tokens_per_s"] for event in events if event["event"] == "train"]
    signature = validations[0]["signature"] if validations else None
    return {
        "minutes_to_bleu": reached,
        "validations": course,
        "signature": signature,
        "tokens_per_s": statistics.median(speeds) if speeds else 0.0,
    }
