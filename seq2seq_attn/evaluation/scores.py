"""The scores of several arms on one test set: overall, by length, and against the first one.

The first arm is the baseline of every paired test. The caller counts the lengths that buckets are made from, so that
the buckets of all runs hold the same sentence pairs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np

from seq2seq_attn.evaluation.arms import Arm, named_arms
from seq2seq_attn.evaluation.attention_scores import AttentionScores
from seq2seq_attn.evaluation.translations import LineCounts
from seq2seq_attn.metrics.bleu import DEFAULT_MEASURES, CorpusStatistics, IntArray, Measure, MeasureName
from seq2seq_attn.metrics.by_length import Bucket
from seq2seq_attn.metrics.seeds import (
    BootstrapSamples,
    Spread,
    bootstrap,
    mean_difference,
    mean_interval,
    mean_retention,
    pool,
    spread,
)
from seq2seq_attn.metrics.significance import (
    DEFAULT_SEED,
    NUM_RESAMPLES,
    NUM_TRIALS,
    Interval,
    PairedTest,
    paired_randomization,
)

BUCKET_MEASURES: tuple[MeasureName, ...] = ("bleu", "chrf", "ter", "exact", "cer", "wer")
"""the measures by which buckets are scored; if only others are requested, buckets are scored by all of those"""


@dataclass(frozen=True)
class Resampling:
    """How intervals and p-values are resampled."""

    num_resamples: int = NUM_RESAMPLES
    num_trials: int = NUM_TRIALS
    seed: int = DEFAULT_SEED


DEFAULT_RESAMPLING = Resampling()


@dataclass(frozen=True)
class ArmScore:
    """One arm under one measure on some sentence pairs, and against the first arm unless it is the first."""

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
    """whether the measure says little: BLEU, where few references have four tokens"""

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        values: dict[str, Any] = {
            "score": self.interval.value,
            "low": self.interval.low,
            "high": self.interval.high,
        }
        for name, part in (
            ("paired_bootstrap", self.bootstrap),
            ("paired_randomization", self.randomization),
            ("retention", self.retention),
        ):
            if part is not None:
                values[name] = asdict(part)
        return values


@dataclass(frozen=True)
class BucketScores:
    """One length bucket: each measure's scores, in the order of the arms and in the order of the runs."""

    bucket: Bucket
    scores: dict[MeasureName, list[ArmScore]]
    run_scores: dict[MeasureName, list[ArmScore]]


@dataclass(frozen=True)
class SetScores:
    """One test set: the scores of each measure, overall and by length."""

    name: str
    num_pairs: int
    runs: list[str]
    """their names"""
    arms: list[Arm]
    signatures: dict[MeasureName, str]
    scores: dict[MeasureName, list[ArmScore]]
    """in the order of the arms"""
    run_scores: dict[MeasureName, list[ArmScore]]
    """in the order of the runs, each as an arm of its own"""
    details: dict[MeasureName, list[str]]
    """sacreBLEU's verbose part for each run: precisions, brevity penalty, lengths"""
    buckets: list[BucketScores] = field(default_factory=list)
    num_concatenated: int = 1
    """number of pairs of the corpus that are concatenated into each pair"""
    attention: AttentionScores | None = None
    counts: list[LineCounts] = field(default_factory=list)
    """in the order of the runs; empty: no model translated"""

    @property
    def is_grouped(self) -> bool:
        """Whether an arm has several runs."""
        return len(self.arms) < len(self.runs)

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
        return {
            "name": self.name,
            "num_pairs": self.num_pairs,
            "num_concatenated": self.num_concatenated,
            "measures": measures,
            **({"translations": self._counts()} if self.counts else {}),
            "buckets": [self._bucket_to_dict(row) for row in self.buckets],
            **self._attention(),
        }

    def _bucket_to_dict(self, row: BucketScores) -> dict[str, Any]:
        return {
            "label": row.bucket.label,
            "lower": row.bucket.lower,
            "upper": row.bucket.upper,
            "num_pairs": len(row.bucket),
            "is_thin": row.bucket.is_thin,
            "measures": self._measures(row),
        }

    def _measures(self, part: SetScores | BucketScores) -> list[dict[str, Any]]:
        measures = []
        for name, of_runs in part.run_scores.items():
            runs = [{"run": run, **score.to_dict()} for run, score in zip(self.runs, of_runs, strict=True)]
            values: dict[str, Any] = {"name": name, "runs": runs}
            if self.is_grouped:
                values["groups"] = [
                    {"arm": arm.name, "seeds": list(arm.seeds), **asdict(score.spread), **score.to_dict()}
                    for arm, score in zip(self.arms, part.scores[name], strict=True)
                ]
            measures.append(values)
        return measures

    def _attention(self) -> dict[str, Any]:
        if self.attention is None:
            return {}
        return {"attention": self.attention.to_dict(self.runs, [row.bucket.label for row in self.buckets])}

    def _counts(self) -> list[dict[str, Any]]:
        pairs = zip(self.runs, self.counts, strict=True)
        return [{"run": run, **counts.to_dict()} for run, counts in pairs]


def score_set(
    name: str,
    hypotheses: dict[str, Sequence[str]],
    references: Sequence[str],
    buckets: Sequence[Bucket],
    *,
    measures: Sequence[MeasureName] = DEFAULT_MEASURES,
    target_language: str = "en",
    resampling: Resampling = DEFAULT_RESAMPLING,
    arms: Sequence[Arm] = (),
    num_concatenated: int = 1,
) -> SetScores:
    """Score the hypotheses of each run (name -> lines, those of the baseline first) against the references.

    Args:
        arms: the runs grouped; empty: each run is an arm of its own.
        num_concatenated: number of pairs of the corpus that are concatenated into each pair.

    Raises:
        UserError: no lines, or another number of hypotheses than of references.
    """
    arms = list(arms) or named_arms(list(hypotheses))
    parts = [_Part(np.arange(len(references))), *(_Part(bucket.indices) for bucket in buckets)]
    signatures, details = {}, {}
    for measure_name in measures:
        measure = Measure(measure_name, references, target_language=target_language)
        statistics = [measure.statistics(lines) for lines in hypotheses.values()]
        signatures[measure_name] = statistics[0].signature
        details[measure_name] = [run.score().details for run in statistics]
        for part in parts if measure_name in bucket_measures(measures) else parts[:1]:
            part.score(measure_name, statistics, arms, resampling)
    whole, *of_buckets = parts
    return SetScores(
        name,
        len(references),
        list(hypotheses),
        arms,
        signatures,
        whole.scores,
        whole.run_scores,
        details,
        [BucketScores(bucket, part.scores, part.run_scores) for bucket, part in zip(buckets, of_buckets, strict=True)],
        num_concatenated,
    )


@dataclass
class _Part:
    """Some sentence pairs of a set, and their scores as far as they are computed."""

    indices: IntArray
    scores: dict[MeasureName, list[ArmScore]] = field(default_factory=dict)
    run_scores: dict[MeasureName, list[ArmScore]] = field(default_factory=dict)

    def score(
        self, measure: MeasureName, runs: Sequence[CorpusStatistics], arms: Sequence[Arm], resampling: Resampling
    ) -> None:
        """Add one measure's scores; `runs` are the statistics of all sentence pairs of the set."""
        samples = bootstrap(
            [run.subset(self.indices) for run in runs], num_resamples=resampling.num_resamples, seed=resampling.seed
        )
        self.run_scores[measure] = self.scores[measure] = compare(samples, resampling)
        if len(arms) < len(runs):
            of_arms = [pool([samples[run] for run in arm.runs]) for arm in arms]
            self.scores[measure] = compare(of_arms, resampling)


def bucket_measures(measures: Sequence[MeasureName]) -> list[MeasureName]:
    """The measures that buckets are scored by."""
    chosen = [name for name in measures if name in BUCKET_MEASURES]
    return chosen or list(measures)


def compare(arms: Sequence[BootstrapSamples], resampling: Resampling) -> list[ArmScore]:
    """The score of each arm with its spread and interval, and paired tests of all but the first against the first."""
    baseline = arms[0]
    is_too_short = baseline.runs[0].is_too_short
    scores = [ArmScore(spread(baseline.values), mean_interval(baseline), is_too_short=is_too_short)]
    for arm in arms[1:]:
        randomization = None
        if len(baseline.runs) == len(arm.runs) == 1:
            pair = (baseline.runs[0], arm.runs[0])
            randomization = paired_randomization(*pair, num_trials=resampling.num_trials, seed=resampling.seed)
        scores.append(
            ArmScore(
                spread(arm.values),
                mean_interval(arm),
                mean_difference(baseline, arm, seed=resampling.seed),
                randomization,
                mean_retention(baseline, arm),
                is_too_short,
            )
        )
    return scores
