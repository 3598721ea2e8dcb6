"""From finished runs to records: translation, attention and speed of each row.

A record grows: each call adds the seeds that it finds, and replaces those that were trained again.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Sequence

import torch

from scripts.laboratory.benchmarks.train_work import BUCKETED, make_batches, run_update, updates_over
from scripts.laboratory.harness.records import Record, describe
from scripts.laboratory.harness.runs import describe_run
from scripts.laboratory.harness.turns import Contestant, paired_ratio, take_turns
from scripts.mechanism_bench.moves import measure_moves
from scripts.mechanism_bench.plan import BASELINE_ROW, CAPTIONS, Row
from scripts.mechanism_bench.runs import RUNS, Training
from seq2seq_attn.commands.evaluate import EvaluationRequest, evaluate
from seq2seq_attn.config import load_config
from seq2seq_attn.evaluation.runs import Decoding
from seq2seq_attn.evaluation.scores import Resampling
from seq2seq_attn.files import read_json, write_json
from seq2seq_attn.report.build import Settings
from seq2seq_attn.report.files import ReportFiles
from seq2seq_attn.runtime.precision import training_precision

CPU = torch.device("cpu")
SETTINGS = Settings(measures=("bleu",), resampling=Resampling(num_resamples=1000, num_trials=1000))


def read_record(row: Row) -> Record:
    """The record of a row; an empty one if there is none, or if the row has had other settings since."""
    begun: Record = {"row": row.name, "command": row.command, "captions": [], "multi30k": []}
    found = read_json(row.record_path) if row.record_path.exists() else begun
    return found if found["command"] == row.command else begun


def add_run(training: Training) -> bool:
    """Add a finished run to its row's record. False: the record has all of this seed, from this run or a later one."""
    corpus = "captions" if training.base == CAPTIONS else "multi30k"
    record, about = read_record(training.row), describe_run(training.run)
    known: Record = next((one for one in record[corpus] if one["seed"] == training.seed), {})
    if known and known["trained_at"] > about["trained_at"]:
        return False
    scores = known if known and known["trained_at"] == about["trained_at"] else {}
    if corpus == "captions" and "moves" not in scores:
        scores = scores_of(training)
    entry = {"seed": training.seed, **scores, **about}
    write_json(training.row.record_path, {**record, corpus: with_entry(record[corpus], entry)})
    return entry != known


def lacks_picture(row: Row) -> bool:
    """Whether the row has attention over source positions, as its record says, but no picture of it."""
    return not row.picture_path.exists() and any(one["moves"] is not None for one in read_record(row)["captions"])


def with_entry(entries: Sequence[Record], entry: Record) -> list[Record]:
    """The seeds in order, this one new or replaced."""
    return sorted([*(one for one in entries if one["seed"] != entry["seed"]), entry], key=lambda one: int(one["seed"]))


def scores_of(training: Training) -> Record:
    """Translate and score the test set; read the references for the attention's error against gold links."""
    json_path = RUNS / "reports" / f"{training.row.stem}-s{training.seed}.json"
    json_path.parent.mkdir(parents=True, exist_ok=True)
    request = EvaluationRequest(
        [training.run.path],
        settings=SETTINGS,
        decoding=Decoding(reuse_hypotheses=True),
        files=ReportFiles(json=json_path),
    )
    return {**seed_scores(evaluate(request).data), "moves": measure_moves(training.run)}


def seed_scores(report: Record) -> Record:
    """The part of a report of one run that a record keeps."""
    [test] = report["sets"]
    [measure] = test["measures"]
    [attention] = test["attention"]["runs"]
    score = measure["runs"][0]
    return {
        "bleu": round(score["score"], 2),
        "low": round(score["low"], 2),
        "high": round(score["high"], 2),
        "num_pairs": test["num_pairs"],
        "signature": measure["signature"],
        "by_length": [
            {
                "label": bucket["label"],
                "num_pairs": bucket["num_pairs"],
                "bleu": round(bucket["measures"][0]["runs"][0]["score"], 2),
            }
            for bucket in test["buckets"]
        ],
        "error_rates": {str(one["shift"]): _rounded(one["error_rate"]) for one in attention.get("gold", [])},
        **{key: _rounded(attention[key]) for key in ("entropy", "dropped", "repeated")},
        "search": report["runs"][0]["search"],
        "scored_at_commit": ((report["environment"].get("git") or {}).get("commit") or "unknown")[:12],
    }


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 4)


def measure_speed(row: Row, num_turns: int) -> Record:
    """Training speed relative to the baseline: the same batches in turns, one thread, CPU time."""
    precision = training_precision("auto", CPU)
    contestants = []
    for one in (BASELINE_ROW, row):
        config = load_config([CAPTIONS, one.overlay], one.settings)
        batches, sizes = make_batches(config, num_turns)
        update = run_update(config, sizes, precision, 1.0, CPU)
        contestants.append(Contestant(one.name, updates_over(batches[BUCKETED], update), clock=time.process_time))
    take_turns(contestants, num_turns, warm_up=2)
    base, own = contestants
    ratio = paired_ratio(own.speeds, base.speeds)
    return {
        "ratio": round(ratio.value, 3),
        "low": round(ratio.low, 3),
        "high": round(ratio.high, 3),
        "turns": num_turns,
        "ms_per_1000_tokens": round(1e6 / statistics.median(own.speeds), 1),
        "precision": precision,
        "environment": describe("scripts/mechanisms"),
    }


def add_speed(row: Row, num_turns: int) -> Record:
    """Measure a row's speed and keep it in its record."""
    speed = measure_speed(row, num_turns)
    write_json(row.record_path, {**read_record(row), "speed": speed})
    return speed
