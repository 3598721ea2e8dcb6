"""Minutes of a training run until its validation set was translated at given BLEU (cased, greedy).

The clock is the run's own: it counts updates, validations and checkpoints, not the preparation of
the data.
"""

import statistics
from collections.abc import Sequence
from pathlib import Path

from scripts.laboratory.benchmarks.measure import build_parser, publish
from scripts.laboratory.harness.records import Record, read_events
from seq2seq_attn.files import read_json
from seq2seq_attn.run import Run


def main(arguments: Sequence[str]) -> None:
    parser = build_parser("time-to-bleu", __doc__)
    parser.add_argument("run", type=Path, help="a trained run")
    parser.add_argument("--targets", default="30,35", help="BLEU scores, separated by commas")
    options = parser.parse_args(arguments)
    targets = [float(target) for target in options.targets.split(",")]
    environment = read_json(options.run / "environment.json")
    about = {"config": Run(options.run).config.name, "threads": environment["num_threads"]}
    publish(about | summarize(read_events(options.run), targets), options.record, environment)


def summarize(events: Sequence[Record], targets: Sequence[float]) -> Record:
    """When each target was first reached, the course of validation, the speed."""
    validations = [event for event in events if event["event"] == "validation"]
    speeds = [event["tokens_per_s"] for event in events if event["event"] == "train"]
    minutes_to_bleu: dict[str, float | None] = {f"{target:g}": None for target in targets}
    course = []
    for event in validations:
        minutes = event["elapsed_s"] / 60
        course.append({"minutes": minutes, "bleu": event["bleu"]})
        for target in targets:
            if event["bleu"] >= target and minutes_to_bleu[f"{target:g}"] is None:
                minutes_to_bleu[f"{target:g}"] = minutes
    return {
        "minutes_to_bleu": minutes_to_bleu,
        "validations": course,
        "signature": validations[0]["signature"] if validations else None,
        "tokens_per_s": statistics.median(speeds) if speeds else 0.0,
    }
