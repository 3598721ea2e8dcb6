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
    """the corpus score of each seed"""
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
        return {
            "mean": self.interval.value,
            "standard_deviation": self.deviation,
            "min": min(self.values),
            "max": max(self.values),
            "num_seeds": len(self.values),
        }

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        values: dict[str, Any] = {
            "score": self.interval.value,
            "low": self.interval.low,
            "high": self.interval.high,
        }
        comparisons = {
            "paired_bootstrap": self.bootstrap,
            "paired_randomization": self.randomization,
            "retention": self.retention,
        }
        for name, comparison in comparisons.items():
            if comparison is not None:
                values[name] = asdict(comparison)
        return values


@dataclass(frozen=True)
class BucketScores:
    """The sentence pairs of one length, or all of a set: each metric's scores, in the order of the
    arms, and in that of the runs, each as an arm of its own."""

    bucket: Bucket
    scores: dict[str, list[ArmScore]]
    run_scores: dict[str, list[ArmScore]]
    attention: Sequence[AttentionScore] = ()
    """one for each run; empty: not analyzed"""

    @property
    def is_too_short(self) -> bool:
        """Whether a metric says little, because few references have four tokens."""
        return any(scores[0].is_too_short for scores in self.scores.values())


@dataclass(frozen=True)
class SetScores:
    """One test set: the scores of each metric, overall and by length."""

    name: str
    runs: list[str]
    """names of the runs"""
    arms: list[Arm]
    whole: BucketScores
    """all sentence pairs, under every metric"""
    buckets: list[BucketScores]
    """by length, under `bucket_metrics`"""
    signatures: dict[str, str]
    """the signature of each metric"""
    details: dict[str, list[str]]
    """sacreBLEU's verbose part for each run: precisions, brevity penalty, lengths"""
    unit: str = "source tokens"
    """the unit of lengths"""
    num_concatenated: int = 1
    """number of pairs of the corpus that are concatenated into each pair"""
    counts: Sequence[LineCounts] = ()
    """one for each run; empty: no model translated"""

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
        return replace(
            self,
            arms=named_arms(self.runs),
            whole=replace(self.whole, scores=self.whole.run_scores),
            buckets=[replace(row, scores=row.run_scores) for row in self.buckets],
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON; `groups` are the arms, where there are fewer of them than
        runs."""
        measures = self._measures(self.whole)
        for measure in measures:
            name = measure["name"]
            measure["signature"] = self.signatures[name]
            for run, details in zip(measure["runs"], self.details[name], strict=True):
                run["details"] = details
        values: dict[str, Any] = {
            "name": self.name,
            "num_pairs": self.num_pairs,
            "num_concatenated": self.num_concatenated,
            "measures": measures,
        }
        if self.counts:
            values["translations"] = self._by_run([counts._asdict() for counts in self.counts])
        values["buckets"] = [
            {**row.bucket.to_dict(), "measures": self._measures(row)} for row in self.buckets
        ]
        if self.whole.attention:
            buckets = [
                {"label": row.bucket.label, "runs": self._attention(row)} for row in self.buckets
            ]
            values["attention"] = {"runs": self._attention(self.whole), "buckets": buckets}
        return values

    def _by_run(self, values: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
        return [{"run": run, **entry} for run, entry in zip(self.runs, values, strict=True)]

    def _attention(self, row: BucketScores) -> list[dict[str, Any]]:
        return self._by_run([score.to_dict() for score in row.attention])

    def _measures(self, row: BucketScores) -> list[dict[str, Any]]:
        measures = []
        for name, run_scores in row.run_scores.items():
            runs = self._by_run([score.to_dict() for score in run_scores])
            measure: dict[str, Any] = {"name": name, "runs": runs}
            if self.is_grouped:
                measure["groups"] = [
                    {
                        "arm": arm.name,
                        "seeds": list(arm.seeds),
                        **score.seed_values(),
                        **score.to_dict(),
                    }
                    for arm, score in zip(self.arms, row.scores[name], strict=True)
                ]
            measures.append(measure)
        return measures


def metrics_by_length(metrics: Iterable[str]) -> list[str]:
    """The metrics that buckets are scored by; all metrics, if none of them is meant for buckets."""
    return [name for name in metrics if METRICS[name].is_scored_by_length] or list(metrics)
