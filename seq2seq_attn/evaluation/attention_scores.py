"""Attention statistics of several runs on one test set, overall and by length: entropy, coverage, alignment error.

Counts are collected run by run (`AttentionAnalysis`); scores are sums of them, so buckets and pooled sets cost little.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from seq2seq_attn.files import finite
from seq2seq_attn.metrics.alignment import AlignmentScore, Weights, score_attention
from seq2seq_attn.metrics.attention_stats import AttentionScore, AttentionStatistics, join_statistics
from seq2seq_attn.metrics.by_length import Bucket
from seq2seq_attn.text.links import Link

SHIFTS = (-1, 0, 1)
"""target positions by which attention is shifted before it is compared with gold links (`alignment.shift_weights`)"""


@dataclass(frozen=True)
class GoldLinks:
    """Gold word alignments of sentence pairs, and the words that they are numbered in."""

    links: list[str]
    """one line per pair in Pharaoh format, `0-0 1-2`"""
    source_words: list[list[str]]
    target_words: list[list[str]]


@dataclass(frozen=True, eq=False)
class GoldAttention:
    """A run's attention on the references, by forced decoding, over the words that gold links are numbered in."""

    weights: Sequence[Weights]
    """[target words, source words] of each pair"""
    links: Sequence[Sequence[Link]]

    def subset(self, indices: npt.NDArray[np.int64]) -> GoldAttention:
        """The attention on some of the sentence pairs."""
        chosen = indices.tolist()
        return GoldAttention([self.weights[index] for index in chosen], [self.links[index] for index in chosen])

    def scores(self) -> dict[int, AlignmentScore]:
        """Scores against the links, for each shift."""
        return {shift: score_attention(self.weights, self.links, shift=shift) for shift in SHIFTS}


@dataclass(frozen=True, eq=False)
class AttentionAnalysis:
    """The attention of one run on one set, sentence pair by sentence pair."""

    statistics: AttentionStatistics
    gold: GoldAttention | None = None
    """None: no attention over source positions, or no gold links"""

    def score(self, indices: npt.NDArray[np.int64] | None = None) -> AnalysisScore:
        """The values of some of the sentence pairs, or of all."""
        if indices is None:
            return AnalysisScore(self.statistics.score(), {} if self.gold is None else self.gold.scores())
        gold = None if self.gold is None else self.gold.subset(indices)
        return AttentionAnalysis(self.statistics.subset(indices), gold).score()


@dataclass(frozen=True)
class AnalysisScore:
    """The values of one run on some sentence pairs."""

    attention: AttentionScore
    gold: dict[int, AlignmentScore]
    """against gold links for each shift; empty without them"""

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        values: dict[str, Any] = asdict(self.attention)
        if self.gold:
            values["gold"] = [{"shift": shift, **finite(asdict(score))} for shift, score in self.gold.items()]
        return values


@dataclass(frozen=True)
class AttentionScores:
    """One test set: the values of each run, in the order of the runs, overall and by length."""

    overall: list[AnalysisScore]
    buckets: list[list[AnalysisScore]]
    """in the order of the set's buckets"""

    def to_dict(self, names: Sequence[str], labels: Sequence[str]) -> dict[str, Any]:
        """Plain values, for JSON; `names` are those of the runs, `labels` those of the buckets."""
        buckets = zip(labels, self.buckets, strict=True)
        return {
            "runs": _rows(names, self.overall),
            "buckets": [{"label": label, "runs": _rows(names, row)} for label, row in buckets],
        }


def pool_analyses(parts: Sequence[AttentionAnalysis]) -> AttentionAnalysis:
    """One run's analyses of several sets as one; with gold links if all parts have them."""
    gold = [part.gold for part in parts if part.gold is not None]
    pooled = GoldAttention(
        [weights for part in gold for weights in part.weights], [links for part in gold for links in part.links]
    )
    return AttentionAnalysis(
        join_statistics([part.statistics for part in parts]), pooled if gold and len(gold) == len(parts) else None
    )


def score_attentions(analyses: Sequence[AttentionAnalysis], buckets: Sequence[Bucket]) -> AttentionScores:
    """The values of each run on one set."""
    return AttentionScores(
        [analysis.score() for analysis in analyses],
        [[analysis.score(bucket.indices) for analysis in analyses] for bucket in buckets],
    )


def _rows(names: Sequence[str], scores: Sequence[AnalysisScore]) -> list[dict[str, Any]]:
    return [{"run": name, **score.to_dict()} for name, score in zip(names, scores, strict=True)]
