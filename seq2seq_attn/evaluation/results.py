"""Classes for the scores of several arms on a test set, overall and by length.

An arm is a group of runs that differ only in their seed; its score is the mean of the runs' scores.
The first arm is the baseline of every paired test. A bucket holds the sentence pairs of a range of
lengths.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from statistics import stdev

from seq2seq_attn.evaluation.names import Arm, named_arms
from seq2seq_attn.evaluation.translations import LineCounts
from seq2seq_attn.files import JsonObject
from seq2seq_attn.metrics.attention import AttentionScore
from seq2seq_attn.metrics.by_length import Bucket
from seq2seq_attn.metrics.significance import BootstrapTest, Interval
from seq2seq_attn.metrics.table import METRICS


@dataclass(frozen=True)
class ArmScore:
    """The score of an arm by a metric on some sentence pairs, and the comparison with the first
    arm."""

    values: Sequence[float]
    """the corpus score of each seed"""
    interval: Interval
    """the mean over the seeds, with its bootstrap interval over sentences"""
    bootstrap: BootstrapTest | None = None
    """the paired test against the first arm; None for the first arm"""
    retention: Interval | None = None
    """the mean of this arm divided by the mean of the first arm; None for the first arm, for error
    rates, and if the first arm scores 0 on the pairs or on a resample"""
    is_too_short: bool = False
    """whether the metric is BLEU and few references have at least four tokens"""

    @property
    def deviation(self) -> float | None:
        """Return the sample standard deviation over seeds (divisor n - 1), or None for one seed."""
        return stdev(self.values) if len(self.values) > 1 else None

    def seed_values(self) -> JsonObject:
        """Return the mean and the spread over seeds as plain values, for JSON."""
        return {
            "mean": self.interval.value,
            "standard_deviation": self.deviation,
            "min": min(self.values),
            "max": max(self.values),
            "num_seeds": len(self.values),
        }

    def to_dict(self) -> JsonObject:
        """Return the score and the comparisons as plain values, for JSON."""
        values: JsonObject = {
            "score": self.interval.value,
            "low": self.interval.low,
            "high": self.interval.high,
        }
        comparisons = {"paired_bootstrap": self.bootstrap, "retention": self.retention}
        for name, comparison in comparisons.items():
            if comparison is not None:
                values[name] = asdict(comparison)
        return values


@dataclass(frozen=True)
class BucketScores:
    """The scores of all arms and runs on the sentence pairs of one bucket, or on a whole set."""

    bucket: Bucket
    scores: dict[str, list[ArmScore]]
    """for each metric, the score of each arm"""
    run_scores: dict[str, list[ArmScore]]
    """for each metric, the score of each run, as an arm with one seed"""
    attention: Sequence[AttentionScore] = ()
    """the attention statistics of each run; empty if attention was not analyzed"""

    @property
    def is_too_short(self) -> bool:
        """Tell whether few references have four tokens, so that BLEU says little."""
        return any(scores[0].is_too_short for scores in self.scores.values())


@dataclass(frozen=True)
class SetScores:
    """The scores of all arms and runs on one test set, overall and by length."""

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
    """for each metric, sacreBLEU's details of each run: precisions, brevity penalty, lengths"""
    unit: str = "source tokens"
    """the unit of lengths"""
    num_concatenated: int = 1
    """number K of pairs of the corpus that are concatenated into each pair
    (`evaluate --concatenate K`); 1 if each pair is a pair of the corpus"""
    counts: Sequence[LineCounts] = ()
    """the counts of each run; empty if the translations were not made by a model"""
    warnings: Sequence[str] = ()
    """problems of the test set, from `audit.audit_set`"""

    @property
    def num_pairs(self) -> int:
        """Return the number of sentence pairs."""
        return len(self.whole.bucket)

    @property
    def is_grouped(self) -> bool:
        """Tell whether an arm has several runs."""
        return len(self.arms) < len(self.runs)

    @property
    def has_thin_bucket(self) -> bool:
        """Tell whether a bucket has too few pairs for its score to be trusted."""
        return any(row.bucket.is_thin for row in self.buckets)

    @property
    def bucket_metrics(self) -> list[str]:
        """Return the metrics by which buckets are scored. The first metric is the main metric. Only
        this metric is shown where there is no room for several metrics."""
        return metrics_by_length(self.whole.scores)

    @property
    def has_gold(self) -> bool:
        """Tell whether attention was compared with gold links."""
        return any(score.gold for score in self.whole.attention)

    def ungrouped(self) -> SetScores:
        """Return a copy of these scores in which each run is an arm with one seed."""
        return replace(
            self,
            arms=named_arms(self.runs),
            whole=replace(self.whole, scores=self.whole.run_scores),
            buckets=[replace(row, scores=row.run_scores) for row in self.buckets],
        )

    def to_dict(self) -> JsonObject:
        """Return the scores of all runs as plain values, for JSON. If an arm has several runs,
        `groups` has the scores of the arms."""
        measures = self._measures(self.whole)
        for measure in measures:
            name = measure["name"]
            measure["signature"] = self.signatures[name]
            for run_values, details in zip(measure["runs"], self.details[name], strict=True):
                run_values["details"] = details
        values: JsonObject = {
            "name": self.name,
            "num_pairs": self.num_pairs,
            "num_concatenated": self.num_concatenated,
            "warnings": list(self.warnings),
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

    def _by_run(self, values: Sequence[JsonObject]) -> list[JsonObject]:
        """Add the name of the run to the values of each run."""
        return [{"run": run, **entry} for run, entry in zip(self.runs, values, strict=True)]

    def _attention(self, row: BucketScores) -> list[JsonObject]:
        return self._by_run([score.to_dict() for score in row.attention])

    def _measures(self, row: BucketScores) -> list[JsonObject]:
        """Return the scores of a bucket or of the whole set by metric."""
        measures = []
        for name, run_scores in row.run_scores.items():
            runs = self._by_run([score.to_dict() for score in run_scores])
            measure: JsonObject = {"name": name, "runs": runs}
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
    """Return the metrics that are scored by length, or all metrics if there are no such metrics."""
    return [name for name in metrics if METRICS[name].is_scored_by_length] or list(metrics)
