"""The scores of several arms on one test set: overall, by length, and against the first one.

The first arm is the baseline of every paired test. The caller counts the lengths that buckets are made from, so that
the buckets of all runs hold the same sentence pairs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from seq2seq_attn.evaluation.names import Arm, named_arms
from seq2seq_attn.evaluation.translations import LineCounts
from seq2seq_attn.metrics.attention_stats import AttentionScore, AttentionStatistics
from seq2seq_attn.metrics.bleu import CorpusStatistics, Measure
from seq2seq_attn.metrics.by_length import Bucket
from seq2seq_attn.metrics.significance import (
    DEFAULT_SEED,
    NUM_RESAMPLES,
    NUM_TRIALS,
    BootstrapSamples,
    Interval,
    PairedTest,
    Spread,
    bootstrap,
    mean_difference,
    mean_interval,
    mean_retention,
    paired_randomization,
    pool,
    spread,
)
from seq2seq_attn.metrics.table import DEFAULT_METRICS, METRICS
from seq2seq_attn.text.normalize import visible


@dataclass(frozen=True)
class Resampling:
    """How intervals and p-values are resampled."""

    num_resamples: int = NUM_RESAMPLES
    num_trials: int = NUM_TRIALS
    seed: int = DEFAULT_SEED


DEFAULT_RESAMPLING = Resampling()


@dataclass(frozen=True)
class ArmScore:
    """One arm under one metric on some sentence pairs, and against the first arm unless it is the first."""

    spread: Spread
    """over the seeds"""
    interval: Interval
    """the mean over the seeds with its bootstrap interval over sentences"""
    bootstrap: PairedTest | None = None
    randomization: PairedTest | None = None
    """between two runs only: with several seeds there is no one run to swap sentences with"""
    retention: Interval | None = None
    """this arm's mean / the first arm's; None for the first arm, for error rates, and where that mean is 0"""
    is_too_short: bool = False
    """whether the metric says little: BLEU, where few references have four tokens"""

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        tests = {
            "paired_bootstrap": self.bootstrap,
            "paired_randomization": self.randomization,
            "retention": self.retention,
        }
        interval = {"score": self.interval.value, "low": self.interval.low, "high": self.interval.high}
        return interval | {name: asdict(test) for name, test in tests.items() if test is not None}


@dataclass(frozen=True)
class BucketScores:
    """One length bucket: each metric's scores, in the order of the arms and in the order of the runs."""

    bucket: Bucket
    scores: dict[str, list[ArmScore]]
    run_scores: dict[str, list[ArmScore]]
    attention: Sequence[AttentionScore] = ()
    """in the order of the runs; empty: not analyzed"""


@dataclass(frozen=True)
class SetScores:
    """One test set: the scores of each metric, overall and by length."""

    name: str
    num_pairs: int
    runs: list[str]
    """their names"""
    arms: list[Arm]
    signatures: dict[str, str]
    scores: dict[str, list[ArmScore]]
    """in the order of the arms"""
    run_scores: dict[str, list[ArmScore]]
    """in the order of the runs, each as an arm of its own"""
    details: dict[str, list[str]]
    """sacreBLEU's verbose part for each run: precisions, brevity penalty, lengths"""
    buckets: list[BucketScores] = field(default_factory=list)
    num_concatenated: int = 1
    """number of pairs of the corpus that are concatenated into each pair"""
    attention: Sequence[AttentionScore] = ()
    """in the order of the runs; empty: not analyzed"""
    counts: Sequence[LineCounts] = ()
    """in the order of the runs; empty: no model translated"""

    @property
    def is_grouped(self) -> bool:
        """Whether an arm has several runs."""
        return len(self.arms) < len(self.runs)

    @property
    def bucket_metrics(self) -> list[str]:
        """The metrics that buckets are scored by, the one to show where there is room for one first."""
        return metrics_by_length(list(self.scores))

    def ungrouped(self) -> SetScores:
        """The same scores with each run as an arm of its own."""
        buckets = [replace(row, scores=row.run_scores) for row in self.buckets]
        return replace(self, arms=named_arms(self.runs), scores=self.run_scores, buckets=buckets)

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON; `groups` are the arms, where there are fewer of them than runs."""
        measures = self._measures(self)
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
            {
                "label": row.bucket.label,
                "lower": row.bucket.lower,
                "upper": row.bucket.upper,
                "num_pairs": len(row.bucket),
                "is_thin": row.bucket.is_thin,
                "measures": self._measures(row),
            }
            for row in self.buckets
        ]
        if self.attention:
            buckets = [
                {"label": row.bucket.label, "runs": self._by_run(run.to_dict() for run in row.attention)}
                for row in self.buckets
            ]
            values["attention"] = {"runs": self._by_run(run.to_dict() for run in self.attention), "buckets": buckets}
        return values

    def _by_run(self, parts: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
        return [{"run": run, **values} for run, values in zip(self.runs, parts, strict=True)]

    def _measures(self, part: SetScores | BucketScores) -> list[dict[str, Any]]:
        measures = []
        for name, run_scores in part.run_scores.items():
            values: dict[str, Any] = {"name": name, "runs": self._by_run(score.to_dict() for score in run_scores)}
            if self.is_grouped:
                values["groups"] = [
                    {"arm": arm.name, "seeds": list(arm.seeds), **asdict(score.spread), **score.to_dict()}
                    for arm, score in zip(self.arms, part.scores[name], strict=True)
                ]
            measures.append(values)
        return measures


def score_set(
    name: str,
    hypotheses: dict[str, Sequence[str]],
    references: Sequence[str],
    buckets: Sequence[Bucket],
    *,
    other_references: Sequence[Sequence[str]] = (),
    metrics: Sequence[str] = DEFAULT_METRICS,
    target_language: str = "en",
    resampling: Resampling = DEFAULT_RESAMPLING,
    arms: Sequence[Arm] = (),
    num_concatenated: int = 1,
    counts: Sequence[LineCounts] = (),
    attention: Sequence[AttentionStatistics] = (),
) -> SetScores:
    """Score the hypotheses of each run (name -> lines, those of the baseline first) against the references.

    Args:
        other_references: further references of the same sentences.
        arms: the runs grouped; empty: each run is an arm of its own.
        counts, attention: those of each run; empty: not known.

    Raises:
        UserError: no lines, or another number of hypotheses than of references.
    """
    arms = list(arms) or named_arms(list(hypotheses))
    statistics: dict[str, list[CorpusStatistics]] = {}
    for metric in metrics:
        measure = Measure(metric, references, *other_references, target_language=target_language)
        statistics[metric] = [measure.statistics(lines) for lines in hypotheses.values()]
    inside = {metric: statistics[metric] for metric in metrics_by_length(metrics)}
    rows = []
    for bucket in buckets:
        attention_scores = [run.subset(bucket.indices).score() for run in attention]
        rows.append(BucketScores(bucket, *_score_arms(inside, arms, resampling, bucket), attention_scores))
    scores, run_scores = _score_arms(statistics, arms, resampling)
    return SetScores(
        visible(name),
        len(references),
        list(hypotheses),
        arms,
        {metric: runs[0].signature for metric, runs in statistics.items()},
        scores,
        run_scores,
        {metric: [run.details for run in runs] for metric, runs in statistics.items()},
        rows,
        num_concatenated,
        [run.score() for run in attention],
        counts,
    )


def _score_arms(
    statistics: Mapping[str, Sequence[CorpusStatistics]],
    arms: Sequence[Arm],
    resampling: Resampling,
    bucket: Bucket | None = None,
) -> tuple[dict[str, list[ArmScore]], dict[str, list[ArmScore]]]:
    """The scores of the arms and those of the runs, from the statistics of the runs, of all pairs or of a bucket."""
    scores, run_scores = {}, {}
    for name, runs in statistics.items():
        if bucket is not None:
            runs = [run.subset(bucket.indices) for run in runs]
        samples = bootstrap(runs, num_resamples=resampling.num_resamples, seed=resampling.seed)
        scores[name] = run_scores[name] = compare(samples, resampling)
        if len(arms) < len(runs):
            scores[name] = compare([pool([samples[run] for run in arm.runs]) for arm in arms], resampling)
    return scores, run_scores


def metrics_by_length(metrics: Sequence[str]) -> list[str]:
    """Those of the metrics by which buckets are scored; all, if none is meant to be."""
    return [name for name in metrics if METRICS[name].is_scored_by_length] or list(metrics)


def compare(arms: Sequence[BootstrapSamples], resampling: Resampling) -> list[ArmScore]:
    """The score of each arm with its spread and interval, and paired tests of all but the first against the first."""
    baseline, scores = arms[0], []
    for arm in arms:
        score = ArmScore(spread(arm.values), mean_interval(arm), is_too_short=baseline.runs[0].is_too_short)
        if arm is not baseline:
            pair = [*baseline.runs, *arm.runs]
            score = replace(
                score,
                bootstrap=mean_difference(baseline, arm, seed=resampling.seed),
                randomization=paired_randomization(*pair, num_trials=resampling.num_trials, seed=resampling.seed)
                if len(pair) == 2
                else None,
                retention=mean_retention(baseline, arm),
            )
        scores.append(score)
    return scores
