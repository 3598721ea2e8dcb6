"""The scores of several systems on one test set: overall, by length, and against the first one.

The first system is the baseline of every paired test. Buckets are made from lengths that the caller counts, so that
every system is cut alike.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from seq2seq_attn.metrics.bleu import DEFAULT_MEASURES, CorpusStatistics, Measure, MeasureName
from seq2seq_attn.metrics.by_length import Bucket
from seq2seq_attn.metrics.significance import (
    DEFAULT_SEED,
    NUM_RESAMPLES,
    NUM_TRIALS,
    Interval,
    PairedTest,
    bootstrap_interval,
    paired_bootstrap,
    paired_randomization,
    retention,
)

BUCKET_MEASURES: tuple[MeasureName, ...] = ("bleu", "chrf", "ter")
"""what buckets are scored by, where it was asked for at all"""


@dataclass(frozen=True)
class Resampling:
    """How intervals and p-values are drawn."""

    num_resamples: int = NUM_RESAMPLES
    num_trials: int = NUM_TRIALS
    seed: int = DEFAULT_SEED


DEFAULT_RESAMPLING = Resampling()


@dataclass(frozen=True)
class SystemScore:
    """One system under one measure on some sentence pairs, and against the baseline unless it is the baseline."""

    interval: Interval
    bootstrap: PairedTest | None = None
    randomization: PairedTest | None = None
    retention: Interval | None = None
    """this system's score / the baseline's; None also where the baseline scores 0"""

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
                values[name] = part.to_dict()
        return values


@dataclass(frozen=True)
class BucketScores:
    """One length bucket: each measure's scores, in the order of the systems."""

    bucket: Bucket
    scores: dict[MeasureName, list[SystemScore]]


@dataclass(frozen=True)
class SetScores:
    """One test set: each measure's scores, in the order of the systems, overall and by length."""

    name: str
    num_pairs: int
    systems: list[str]
    signatures: dict[MeasureName, str]
    scores: dict[MeasureName, list[SystemScore]]
    details: dict[MeasureName, list[str]]
    """sacreBLEU's verbose part for each system: precisions, brevity penalty, lengths"""
    buckets: list[BucketScores] = field(default_factory=list)

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        measures = []
        for name, scores in self.scores.items():
            of_systems = [
                {"run": system, **score.to_dict(), "details": details}
                for system, score, details in zip(self.systems, scores, self.details[name], strict=True)
            ]
            measures.append({"name": name, "signature": self.signatures[name], "runs": of_systems})
        return {
            "name": self.name,
            "num_pairs": self.num_pairs,
            "measures": measures,
            "buckets": [self._bucket_to_dict(row) for row in self.buckets],
        }

    def _bucket_to_dict(self, row: BucketScores) -> dict[str, Any]:
        return {
            "label": row.bucket.label,
            "lower": row.bucket.lower,
            "upper": row.bucket.upper,
            "num_pairs": len(row.bucket),
            "is_thin": row.bucket.is_thin,
            "measures": [
                {
                    "name": name,
                    "runs": [{"run": run, **score.to_dict()} for run, score in zip(self.systems, scores, strict=True)],
                }
                for name, scores in row.scores.items()
            ],
        }


def score_set(
    name: str,
    systems: dict[str, Sequence[str]],
    references: Sequence[str],
    buckets: Sequence[Bucket],
    *,
    measures: Sequence[MeasureName] = DEFAULT_MEASURES,
    target_language: str = "en",
    resampling: Resampling = DEFAULT_RESAMPLING,
) -> SetScores:
    """Score the hypotheses of each system (name -> lines, the baseline first) against the references.

    Raises:
        UserError: no lines, or another number of hypotheses than of references.
    """
    scores: dict[MeasureName, list[SystemScore]] = {}
    details: dict[MeasureName, list[str]] = {}
    signatures: dict[MeasureName, str] = {}
    rows = [BucketScores(bucket, {}) for bucket in buckets]
    for measure_name in measures:
        measure = Measure(measure_name, references, target_language=target_language)
        statistics = [measure.statistics(hypotheses) for hypotheses in systems.values()]
        signatures[measure_name] = statistics[0].signature
        scores[measure_name] = compare(statistics, resampling)
        details[measure_name] = [system.score().details for system in statistics]
        if measure_name in BUCKET_MEASURES:
            for row in rows:
                inside = [system.subset(row.bucket.indices) for system in statistics]
                row.scores[measure_name] = compare(inside, resampling)
    return SetScores(name, len(references), list(systems), signatures, scores, details, rows)


def compare(statistics: Sequence[CorpusStatistics], resampling: Resampling) -> list[SystemScore]:
    """Each system's score with its interval, and paired tests of all but the first against the first."""
    draws = {"num_resamples": resampling.num_resamples, "seed": resampling.seed}
    baseline = statistics[0]
    scores = [SystemScore(bootstrap_interval(baseline, **draws))]
    for system in statistics[1:]:
        scores.append(
            SystemScore(
                bootstrap_interval(system, **draws),
                paired_bootstrap(baseline, system, **draws),
                paired_randomization(baseline, system, num_trials=resampling.num_trials, seed=resampling.seed),
                retention(baseline, system, **draws),
            )
        )
    return scores
