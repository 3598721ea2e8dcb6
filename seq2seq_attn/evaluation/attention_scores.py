"""What the attention of several runs did on one test set: spread, coverage, and against gold links; overall, by length.

What to judge from is collected run by run (`Judgement`); scores are made here from its counts, so that buckets and
pooled sets cost sums.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from seq2seq_attn.metrics.alignment import AlignmentScore, Weights, score_attention
from seq2seq_attn.metrics.attention_stats import AttentionScore, AttentionStatistics, join_statistics
from seq2seq_attn.metrics.by_length import Bucket
from seq2seq_attn.text.links import Link

SHIFTS = (-1, 0, 1)
"""target positions by which attention is held late against gold links (`alignment.shift_weights`)"""


@dataclass(frozen=True)
class GoldLinks:
    """Gold word alignments of sentence pairs, and the words that they are numbered in."""

    links: list[str]
    """a line a pair in Pharaoh form, `0-0 1-2`"""
    source_words: list[list[str]]
    target_words: list[list[str]]


@dataclass(frozen=True, eq=False)
class GoldAttention:
    """A run's attention on the references, by forced decoding, over the words that gold links are numbered in."""

    weights: Sequence[Weights]
    """[target words, source words] of each pair"""
    links: Sequence[Sequence[Link]]

    def subset(self, indices: npt.NDArray[np.int64]) -> GoldAttention:
        """Those of some of the sentence pairs."""
        chosen = indices.tolist()
        return GoldAttention([self.weights[place] for place in chosen], [self.links[place] for place in chosen])

    def scores(self) -> dict[int, AlignmentScore]:
        """Against the links, for each shift."""
        return {shift: score_attention(self.weights, self.links, shift=shift) for shift in SHIFTS}


@dataclass(frozen=True, eq=False)
class Judgement:
    """What one run did on one set, sentence pair by sentence pair."""

    statistics: AttentionStatistics
    gold: GoldAttention | None = None
    """None: no attention over source positions, or no gold links"""

    def score(self, indices: npt.NDArray[np.int64] | None = None) -> JudgedScore:
        """The values of some of the sentence pairs, or of all."""
        if indices is None:
            return JudgedScore(self.statistics.score(), {} if self.gold is None else self.gold.scores())
        gold = None if self.gold is None else self.gold.subset(indices)
        return Judgement(self.statistics.subset(indices), gold).score()


@dataclass(frozen=True)
class JudgedScore:
    """The values of one run on some sentence pairs."""

    attention: AttentionScore
    gold: dict[int, AlignmentScore]
    """against gold links for each shift; empty without them"""

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        values: dict[str, Any] = self.attention.to_dict()
        if self.gold:
            values["gold"] = [{"shift": shift, **_finite(score.to_dict())} for shift, score in self.gold.items()]
        return values


@dataclass(frozen=True)
class AttentionScores:
    """One test set: the values of each run, in the order of the runs, overall and by length."""

    overall: list[JudgedScore]
    buckets: list[list[JudgedScore]]
    """in the order of the set's buckets"""

    def to_dict(self, systems: Sequence[str], labels: Sequence[str]) -> dict[str, Any]:
        """Plain values, for JSON; `labels` are those of the buckets."""
        buckets = zip(labels, self.buckets, strict=True)
        return {
            "runs": _rows(systems, self.overall),
            "buckets": [{"label": label, "runs": _rows(systems, row)} for label, row in buckets],
        }


def join_judgements(parts: Sequence[Judgement]) -> Judgement:
    """Those of several sets pooled; with gold links if all parts have them."""
    gold = [part.gold for part in parts if part.gold is not None]
    joined = GoldAttention(
        [weights for one in gold for weights in one.weights], [links for one in gold for links in one.links]
    )
    return Judgement(
        join_statistics([part.statistics for part in parts]), joined if gold and len(gold) == len(parts) else None
    )


def score_attentions(judgements: Sequence[Judgement], buckets: Sequence[Bucket]) -> AttentionScores:
    """The values of each run on one set."""
    return AttentionScores(
        [judgement.score() for judgement in judgements],
        [[judgement.score(bucket.indices) for judgement in judgements] for bucket in buckets],
    )


def _rows(systems: Sequence[str], scores: Sequence[JudgedScore]) -> list[dict[str, Any]]:
    return [{"run": system, **score.to_dict()} for system, score in zip(systems, scores, strict=True)]


def _finite(values: dict[str, Any]) -> dict[str, Any]:
    return {
        key: None if isinstance(value, float) and not math.isfinite(value) else value for key, value in values.items()
    }
