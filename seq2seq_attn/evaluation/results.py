"""The scores of several arms on one test set: overall, by length, and against the first one, which
is the baseline of every paired test."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from statistics import stdev
from typing import Any

from seq2seq_attn.evaluation.names import Arm, named_arms
from seq2seq_attn.evaluation.translations import LineCounts
from seq2seq_attn.metrics.attention import AttentionScore
from seq2seq_attn.metrics.by_length import Bucket
from seq2seq_attn.metrics.significance import BootstrapTest, Interval, PairedTest
from seq2seq_attn.metrics.table import METRICS


@dataclass(frozen=True)
class ArmScore:
    """One arm under one metric on some sentence pairs, and against the first arm unless it is the
    first."""

    values: Sequence[float]
    """that of each seed"""
    interval: Interval
    """the mean over the seeds with its bootstrap interval over sentences"""
    bootstrap: BootstrapTest | None = None
    randomization: PairedTest | None = None
    """between two runs only: with several seeds there is no one run to swap sentences with"""
    retention: Interval | None = None
    """this arm's mean / the first arm's; None for the first arm, for error rates, and where that
    mean is 0"""
    is_too_short: bool = False
    """whether the metric says little: BLEU, where few references have four tokens"""

    @property
    def deviation(self) -> float | None:
        """The standard deviation over seeds, of a sample (n - 1); None with one seed."""
        return stdev(self.values) if len(self.values) > 1 else None

    def seed_values(self) -> dict[str, Any]:
        """The spread over seeds as plain values, for JSON."""
        values = {"mean": self.interval.value, "standard_deviation": self.deviation}
        return values | {
            "min": min(self.values),
            "max": max(self.values),
            "num_seeds": len(self.values),
        }

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        tests = {
            "paired_bootstrap": self.bootstrap,
            "paired_randomization": self.randomization,
            "retention": self.retention,
        }
        interval = {
            "score": self.interval.value,
            "low": self.interval.low,
            "high": self.interval.high,
        }
        return interval | {name: asdict(test) for name, test in tests.items() if test is not None}


@dataclass(frozen=True)
class BucketScores:
    """The sentence pairs of one length, or all of a set: each metric's scores, in the order of the
    arms, and in that of the runs, each as an arm of its own."""

    bucket: Bucket
    scores: dict[str, list[ArmScore]]
    run_scores: dict[str, list[ArmScore]]
    attention: Sequence[AttentionScore] = ()
    """in the order of the runs; empty: not analyzed"""

    @property
    def is_too_short(self) -> bool:
        """Whether a metric says little, because few references have four tokens."""
        return any(scores[0].is_too_short for scores in self.scores.values())


@dataclass(frozen=True)
class SetScores:
    """One test set: the scores of each metric, overall and by length."""

    name: str
    runs: list[str]
    """their names"""
    arms: list[Arm]
    whole: BucketScores
    """all sentence pairs, under every metric"""
    buckets: list[BucketScores]
    """by length, under `bucket_metrics`"""
    signatures: dict[str, str]
    """of each metric"""
    details: dict[str, list[str]]
    """sacreBLEU's verbose part for each run: precisions, brevity penalty, lengths"""
    num_concatenated: int = 1
    """number of pairs of the corpus that are concatenated into each pair"""
    counts: Sequence[LineCounts] = ()
    """in the order of the runs; empty: no model translated"""

    @property
    def num_pairs(self) -> int:
        """The number of sentence pairs."""
        return len(self.whole.bucket)

    @property
    def is_grouped(self) -> bool:
        """Whether an arm has several runs."""
        return len(self.arms) < len(self.runs)

    @property
    def has_thin_bucket(self) -> bool:
        """Whether a bucket has too few pairs for its score to be trusted."""
        return any(row.bucket.is_thin for row in self.buckets)

    @property
    def bucket_metrics(self) -> list[str]:
        """The metrics that buckets are scored by, the one to show where there is room for one
        first."""
        return metrics_by_length(self.whole.scores)

    def ungrouped(self) -> SetScores:
        """The same scores with each run as an arm of its own."""
        whole, *buckets = (
            replace(part, scores=part.run_scores) for part in (self.whole, *self.buckets)
        )
        return replace(self, arms=named_arms(self.runs), whole=whole, buckets=buckets)

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON; `groups` are the arms, where there are fewer of them than
        runs."""
        measures = self._measures(self.whole)
        for measure in measures:
            measure["signature"] = self.signatures[measure["name"]]
            for run, details in zip(measure["runs"], self.details[measure["name"]], strict=True):
                run["details"] = details
        values: dict[str, Any] = {
            "name": self.name,
            "num_pairs": self.num_pairs,
            "num_concatenated": self.num_concatenated,
            "measures": measures,
        }
        if self.counts:
            values["translations"] = self._by_run(counts._asdict() for counts in self.counts)
        values["buckets"] = [
            {**part.bucket.to_dict(), "measures": self._measures(part)} for part in self.buckets
        ]
        if self.whole.attention:
            whole, *buckets = (
                {
                    "label": part.bucket.label,
                    "runs": self._by_run(run.to_dict() for run in part.attention),
                }
                for part in (self.whole, *self.buckets)
            )
            values["attention"] = {"runs": whole["runs"], "buckets": buckets}
        return values

    def _by_run(self, parts: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
        return [{"run": run, **values} for run, values in zip(self.runs, parts, strict=True)]

    def _measures(self, part: BucketScores) -> list[dict[str, Any]]:
        measures = []
        for name, run_scores in part.run_scores.items():
            values: dict[str, Any] = {
                "name": name,
                "runs": self._by_run(score.to_dict() for score in run_scores),
            }
            if self.is_grouped:
                values["groups"] = [
                    {
                        "arm": arm.name,
                        "seeds": list(arm.seeds),
                        **score.seed_values(),
                        **score.to_dict(),
                    }
                    for arm, score in zip(self.arms, part.scores[name], strict=True)
                ]
            measures.append(values)
        return measures


def metrics_by_length(metrics: Iterable[str]) -> list[str]:
    """Those of the metrics by which buckets are scored; all, if none is meant to be."""
    return [name for name in metrics if METRICS[name].is_scored_by_length] or list(metrics)
