"""The scores of several systems on one test set: overall, by length, and against the first one.

The first system is the baseline of every paired test. Buckets are made from lengths that the caller counts, so that
every system is cut alike.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from seq2seq_attn.evaluation.arms import Arm, ArmScore, score_arms
from seq2seq_attn.evaluation.attention_scores import AttentionScores
from seq2seq_attn.evaluation.texts import LineCounts
from seq2seq_attn.metrics.bleu import DEFAULT_MEASURES, Measure, MeasureName
from seq2seq_attn.metrics.by_length import Bucket
from seq2seq_attn.metrics.seeds import Drawn, draw, mean_difference, mean_interval, mean_retention
from seq2seq_attn.metrics.significance import (
    DEFAULT_SEED,
    NUM_RESAMPLES,
    NUM_TRIALS,
    Interval,
    PairedTest,
    paired_randomization,
)

BUCKET_MEASURES: tuple[MeasureName, ...] = ("bleu", "chrf", "ter")
"""what buckets are scored by, where it was asked for at all; where none of them was, by all that was"""


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
    arm_scores: dict[MeasureName, list[ArmScore]] = field(default_factory=dict)
    """in the order of the arms; empty where runs are not grouped"""


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
    arms: list[Arm] = field(default_factory=list)
    """empty unless some arm has several runs"""
    arm_scores: dict[MeasureName, list[ArmScore]] = field(default_factory=dict)
    stitch: int = 1
    """sentence pairs of the corpus that are joined to one of this set"""
    attention: AttentionScores | None = None
    counts: list[LineCounts | None] = field(default_factory=list)
    """in the order of the systems; None: not known; empty: no model translated"""

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        measures = []
        for name, scores in self.scores.items():
            of_systems = [
                {"run": system, **score.to_dict(), "details": details}
                for system, score, details in zip(self.systems, scores, self.details[name], strict=True)
            ]
            groups = self._groups(self.arm_scores.get(name))
            measures.append({"name": name, "signature": self.signatures[name], "runs": of_systems, **groups})
        return {
            "name": self.name,
            "num_pairs": self.num_pairs,
            "stitch": self.stitch,
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
            "measures": [
                {
                    "name": name,
                    "runs": [{"run": run, **score.to_dict()} for run, score in zip(self.systems, scores, strict=True)],
                    **self._groups(row.arm_scores.get(name)),
                }
                for name, scores in row.scores.items()
            ],
        }

    def _attention(self) -> dict[str, Any]:
        if self.attention is None:
            return {}
        return {"attention": self.attention.to_dict(self.systems, [row.bucket.label for row in self.buckets])}

    def _counts(self) -> list[dict[str, Any]]:
        pairs = zip(self.systems, self.counts, strict=True)
        return [{"run": system, **(counts.to_dict() if counts else {})} for system, counts in pairs]

    def _groups(self, scores: Sequence[ArmScore] | None) -> dict[str, Any]:
        if not scores:
            return {}
        return {
            "groups": [
                {"arm": arm.name, "seeds": list(arm.seeds), **score.to_dict()}
                for arm, score in zip(self.arms, scores, strict=True)
            ]
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
    arms: Sequence[Arm] = (),
    stitch: int = 1,
) -> SetScores:
    """Score the hypotheses of each system (name -> lines, the baseline first) against the references.

    Args:
        arms: the systems grouped, to be scored as arms too; none: they are not.
        stitch: how many pairs of the corpus are joined to one of this set.

    Raises:
        UserError: no lines, or another number of hypotheses than of references.
    """
    found = SetScores(name, len(references), list(systems), {}, {}, {}, arms=list(arms), stitch=stitch)
    found.buckets.extend(BucketScores(bucket, {}) for bucket in buckets)
    for measure_name in measures:
        measure = Measure(measure_name, references, target_language=target_language)
        statistics = [measure.statistics(hypotheses) for hypotheses in systems.values()]
        found.signatures[measure_name] = statistics[0].signature
        found.details[measure_name] = [system.score().details for system in statistics]
        rows = [(np.arange(len(references)), found.scores, found.arm_scores)]
        if measure_name in bucket_measures(measures):
            rows += [(row.bucket.indices, row.scores, row.arm_scores) for row in found.buckets]
        for indices, scores, arm_scores in rows:
            drawn = draw(
                [system.subset(indices) for system in statistics],
                num_resamples=resampling.num_resamples,
                seed=resampling.seed,
            )
            scores[measure_name] = compare(drawn, resampling)
            if arms:
                arm_scores[measure_name] = score_arms(drawn, arms, seed=resampling.seed)
    return found


def bucket_measures(measures: Sequence[MeasureName]) -> list[MeasureName]:
    """Those of the measures that buckets are scored by."""
    chosen = [name for name in measures if name in BUCKET_MEASURES]
    return chosen or list(measures)


def compare(drawn: Sequence[Drawn], resampling: Resampling) -> list[SystemScore]:
    """Each system's score with its interval, and paired tests of all but the first against the first."""
    baseline = drawn[0]
    scores = [SystemScore(mean_interval(baseline))]
    for system in drawn[1:]:
        pair = (baseline.runs[0], system.runs[0])
        scores.append(
            SystemScore(
                mean_interval(system),
                mean_difference(baseline, system, seed=resampling.seed),
                paired_randomization(*pair, num_trials=resampling.num_trials, seed=resampling.seed),
                mean_retention(baseline, system),
            )
        )
    return scores
