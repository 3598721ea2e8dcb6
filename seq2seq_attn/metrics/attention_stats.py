"""Attention statistics: entropy, coverage, words that are left out or repeated, and alignment with gold links.

All values are computed from counts per sentence pair, so that those of a length bucket, or of pooled test sets, come
from summed counts. Coverage (Tu et al. 2016, "Modeling coverage for neural machine translation") is the attention that
a source word gets from all target words together: with hardly any it counts as dropped, with that of several words as
repeated. Missing and excess words are counted in the texts, which also works for models without attention.

Shapes: N sentence pairs, T target positions, S source positions.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from seq2seq_attn.files import finite
from seq2seq_attn.metrics.alignment import AlignmentScore, GoldPairs, Weights, score_shifts

DROPPED_BELOW = 0.2
"""a source word with less attention than this from all target words together counts as dropped"""
REPEATED_ABOVE = 2.0
"""a source word with more attention than this counts as repeated"""


@dataclass(frozen=True)
class AttentionScore:
    """Attention statistics of some sentence pairs; None without attention, or with nothing to count."""

    entropy: float | None
    """nats per target token, EOS included"""
    dropped: float | None
    """share of the source words that get less than `DROPPED_BELOW`"""
    repeated: float | None
    """share of the source words that get more than `REPEATED_ABOVE`"""
    missing: float | None
    """share of the reference's words that the hypothesis lacks"""
    excess: float | None
    """share of the hypothesis's words that the reference lacks"""
    gold: dict[int, AlignmentScore] = field(default_factory=dict)
    """against gold links for each shift; empty without them"""

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        values = {**asdict(self), "gold": [{"shift": n, **finite(asdict(score))} for n, score in self.gold.items()]}
        return values if self.gold else {key: value for key, value in values.items() if key != "gold"}


@dataclass(frozen=True, eq=False)
class AttentionStatistics:
    """The counts of each sentence pair."""

    overlap_N4: npt.NDArray[np.int64]
    """`overlap_counts`"""
    attention_N5: npt.NDArray[np.float64] | None = None
    """`attention_counts`; None: no attention over source positions"""
    gold: GoldPairs | None = None
    """None: no attention over source positions, or no gold links"""

    def subset(self, indices: npt.NDArray[np.int64]) -> AttentionStatistics:
        """The counts of some of the sentence pairs (a bucket)."""
        return AttentionStatistics(
            self.overlap_N4[indices],
            None if self.attention_N5 is None else self.attention_N5[indices],
            None if self.gold is None else [self.gold[index] for index in indices.tolist()],
        )

    def score(self) -> AttentionScore:
        """The values of all sentence pairs together."""
        missing, reference_words, excess, hypothesis_words = self.overlap_N4.sum(axis=0).tolist()
        counts_N5 = np.zeros((1, 5)) if self.attention_N5 is None else self.attention_N5
        entropy, tokens, dropped, repeated, source_words = counts_N5.sum(axis=0).tolist()
        return AttentionScore(
            entropy=entropy / tokens if tokens else None,
            dropped=dropped / source_words if source_words else None,
            repeated=repeated / source_words if source_words else None,
            missing=missing / reference_words if reference_words else None,
            excess=excess / hypothesis_words if hypothesis_words else None,
            gold={} if self.gold is None else score_shifts(self.gold),
        )


def join_statistics(parts: Sequence[AttentionStatistics]) -> AttentionStatistics:
    """The statistics of several sets as one; with attention and gold links if all parts have them."""
    counts = [part.attention_N5 for part in parts if part.attention_N5 is not None]
    gold = [part.gold for part in parts if part.gold is not None]
    return AttentionStatistics(
        np.concatenate([part.overlap_N4 for part in parts]),
        np.concatenate(counts) if len(counts) == len(parts) else None,
        [pair for pairs in gold for pair in pairs] if len(gold) == len(parts) else None,
    )


def attention_counts(weights_TS: Weights, word_weights_TS: Weights) -> tuple[float, float, float, float, float]:
    """Counts of one pair: summed entropies in nats, target tokens, dropped source words, repeated ones, all source
    words.

    Args:
        weights_TS: over tokens, with EOS on both sides as the model had it: for the entropy.
        word_weights_TS: the same over words, for the coverage.
    """
    weights, received = weights_TS.astype(np.float64), word_weights_TS.astype(np.float64).sum(axis=0)
    entropies_T = -np.sum(weights * np.log(np.where(weights > 0, weights, 1.0)), axis=1)
    return (
        float(entropies_T.sum()),
        float(len(weights_TS)),
        float((received < DROPPED_BELOW).sum()),
        float((received > REPEATED_ABOVE).sum()),
        float(len(received)),
    )


def overlap_counts(hypothesis: Sequence[str], reference: Sequence[str]) -> tuple[int, int, int, int]:
    """Counts of one pair: reference words missing, reference words, hypothesis words in excess, hypothesis words; as
    multisets, lower-cased. Tokens without a letter or digit (punctuation) are not counted."""
    written, expected = (
        Counter(word.lower() for word in words if any(map(str.isalnum, word))) for words in (hypothesis, reference)
    )
    return (expected - written).total(), expected.total(), (written - expected).total(), written.total()
