"""Summarize a row's record: means over its seeds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from statistics import fmean

from scripts.laboratory.harness.records import Record
from scripts.mechanism_bench.plan import BASELINE_ROW, REASONS, Row, all_rows

MAX_LOSS = 2.0
"""BLEU below the baseline from which a row needs a reason"""


@dataclass(frozen=True)
class Summary:
    """A row of the tables."""

    captions: list[Record]
    """one entry per seed"""
    multi30k: list[Record]
    speed: Record | None

    @property
    def parameters(self) -> int | None:
        """On captions."""
        return next((int(run["parameters"]) for run in self.captions), None)

    @property
    def bleu(self) -> list[float]:
        """Of each seed, on captions."""
        return [run["bleu"] for run in self.captions]

    @property
    def multi30k_bleu(self) -> list[float]:
        """Of each seed, on Multi30k's validation set."""
        return [run["validation_bleu"] for run in self.multi30k]

    @property
    def by_length(self) -> dict[str, tuple[int, float]]:
        """Label of each bucket to its number of pairs and the mean BLEU."""
        buckets = zip(*(run["by_length"] for run in self.captions), strict=True)
        return {one[0]["label"]: (one[0]["num_pairs"], fmean(run["bleu"] for run in one)) for one in buckets}

    @property
    def error_rates(self) -> dict[int, float]:
        """Shift to alignment error rate; empty without attention to source words."""
        first = self.captions[0]["error_rates"] if self.captions else {}
        shifts = [shift for shift, rate in first.items() if rate is not None]
        return {int(shift): fmean(run["error_rates"][shift] for run in self.captions) for shift in shifts}

    def move_error(self, kind: str) -> float | None:
        """The alignment error at words that attention reaches by going on (`next`) or by a `jump`; None if unknown."""
        moves = [run["moves"] for run in self.captions if run.get("moves")]
        return fmean(one[kind]["error_rate"] for one in moves) if moves else None

    def mean(self, key: str) -> float | None:
        """Entropy, or the share of words `dropped` or `repeated`; None without attention to source words."""
        values = [run[key] for run in self.captions if run[key] is not None]
        return fmean(values) if values else None


def summaries(records: Mapping[str, Record]) -> dict[str, Summary]:
    """Each row that has a record with something in it; by the row's name."""
    found = {}
    for row in all_rows():
        record = records.get(row.stem)
        if record is not None and record["command"] == row.command:
            found[row.name] = Summary(record["captions"], record["multi30k"], record.get("speed"))
    return found


def loss_and_reason(row: Row, found: Mapping[str, Summary]) -> tuple[float, str] | None:
    """By how much BLEU a row is below the baseline, and why, where that is more than `MAX_LOSS`."""
    base, own = (found[name].bleu if name in found else [] for name in (BASELINE_ROW.name, row.name))
    loss = fmean(base) - fmean(own) if base and own else 0.0
    return (loss, REASONS.get(row.name, "the cause is not known")) if loss > MAX_LOSS else None
