"""Statistics of attention: entropy, coverage, words that are left out or repeated, and alignment
error rate.

All values are computed from counts per sentence pair, so that those of a length bucket, or of
pooled test sets, come from summed counts. Coverage (Tu et al. 2016, "Modeling coverage for neural
machine translation") is the attention that a source word gets from all target words together: with
hardly any it counts as dropped, with that of several words as repeated. Missing and excess words
are counted in the texts, which also works for models without attention.

Alignment error rate compares links read from attention with gold links, with and without a shift by
a target position. Links are (source position, target position) pairs, as in the Pharaoh format `0-0
1-2`. Koehn and Knowles 2017, "Six challenges for neural machine translation", section 3.5, found
models whose attention is off by one target position; hence the shift.

Shapes: N sentence pairs, T target positions, S source positions. Row t of `weights_TS` holds the
attention of target position t.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from seq2seq_attn.files import finite
from seq2seq_attn.text.links import Link, word_shares

Weights = npt.NDArray[np.floating[Any]]
GoldPair = tuple[Weights, Sequence[Link]]
"""The attention between the words that gold links are numbered in, [T, S], and the links."""
GoldPairs = Sequence[GoldPair]
SHIFTS = (-1, 0, 1)
"""target positions by which attention is shifted before it is compared with gold links"""
DROPPED_BELOW = 0.2
"""a source word with less attention than this from all target words together counts as dropped"""
REPEATED_ABOVE = 2.0
"""a source word with more attention than this counts as repeated"""


@dataclass(frozen=True)
class AlignmentScore:
    """Predicted links of a corpus against gold ones, all in [0, 1]."""

    error_rate: float
    """AER (Och and Ney 2003): 1 - (|A and S| + |A and P|) / (|A| + |S|)"""
    precision: float
    """share of the predicted links that are possible"""
    recall: float
    """share of the sure links that are predicted"""
    mass: float
    """mean weight on possible links, over the target positions that have one; NaN if none has"""
    num_pairs: int


@dataclass(frozen=True)
class AttentionScore:
    """Attention statistics of some sentence pairs; None without attention, or with nothing to
    count."""

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
        """Plain values, for JSON; without gold links there is no `gold`."""
        values = asdict(self)
        del values["gold"]
        if self.gold:
            values["gold"] = [
                {"shift": shift, **finite(asdict(score))} for shift, score in self.gold.items()
            ]
        return values


@dataclass(frozen=True, eq=False)
class AttentionStatistics:
    """The counts of each sentence pair."""

    overlap_N4: npt.NDArray[np.int64]
    """`overlap_counts`"""
    attention_N5: npt.NDArray[np.float64]
    """`attention_counts`; 0 without attention over source positions"""
    gold: GoldPairs | None = None
    """None: no attention over source positions, or no gold links"""

    def subset(self, indices: npt.NDArray[np.int64]) -> AttentionStatistics:
        """The counts of some of the sentence pairs (a bucket)."""
        gold = None
        if self.gold is not None:
            gold = [self.gold[index] for index in indices.tolist()]
        return AttentionStatistics(self.overlap_N4[indices], self.attention_N5[indices], gold)

    def score(self) -> AttentionScore:
        """The values of all sentence pairs together."""
        missing, reference_words, excess, hypothesis_words = self.overlap_N4.sum(axis=0).tolist()
        entropy, tokens, dropped, repeated, source_words = self.attention_N5.sum(axis=0).tolist()
        return AttentionScore(
            entropy=entropy / tokens if tokens else None,
            dropped=dropped / source_words if source_words else None,
            repeated=repeated / source_words if source_words else None,
            missing=missing / reference_words if reference_words else None,
            excess=excess / hypothesis_words if hypothesis_words else None,
            gold=score_shifts(self.gold) if self.gold is not None else {},
        )


def join_statistics(sets: Sequence[AttentionStatistics]) -> AttentionStatistics:
    """The statistics of several sets as one; with gold links if all sets have them."""
    overlap_N4 = np.concatenate([statistics.overlap_N4 for statistics in sets])
    attention_N5 = np.concatenate([statistics.attention_N5 for statistics in sets])
    gold: list[GoldPair] = []
    for statistics in sets:
        if statistics.gold is None:
            return AttentionStatistics(overlap_N4, attention_N5)
        gold += statistics.gold
    return AttentionStatistics(overlap_N4, attention_N5, gold)


def attention_counts(
    weights_TS: Weights, word_weights_TS: Weights
) -> tuple[float, int, int, int, int]:
    """Counts of one pair: summed entropies in nats, target tokens, dropped source words, repeated
    source words, all source words.

    Args:
        weights_TS: over tokens, with EOS on both sides as the model had it: for the entropy.
        word_weights_TS: the same over words, for the coverage.
    """
    weights_TS = weights_TS.astype(np.float64)
    entropies_T = -np.sum(weights_TS * np.log(np.where(weights_TS > 0, weights_TS, 1.0)), axis=1)
    received_S = word_weights_TS.astype(np.float64).sum(axis=0)
    num_dropped = int(np.sum(received_S < DROPPED_BELOW))
    num_repeated = int(np.sum(received_S > REPEATED_ABOVE))
    entropy = float(entropies_T.sum())
    return entropy, len(weights_TS), num_dropped, num_repeated, len(received_S)


def overlap_counts(hypothesis: Sequence[str], reference: Sequence[str]) -> tuple[int, ...]:
    """Counts of one pair: reference words missing, reference words, hypothesis words in excess,
    hypothesis words; as multisets, lower-cased. Tokens without a letter or digit (punctuation) are
    not counted."""
    written = _count_words(hypothesis)
    expected = _count_words(reference)
    missing = (expected - written).total()
    excess = (written - expected).total()
    return missing, expected.total(), excess, written.total()


def _count_words(tokens: Sequence[str]) -> Counter[str]:
    return Counter(token.lower() for token in tokens if any(map(str.isalnum, token)))


def words_from_tokens(
    weights_TS: Weights,
    source_tokens: Sequence[str],
    target_tokens: Sequence[str],
    source_words: Sequence[str],
    target_words: Sequence[str],
) -> npt.NDArray[np.float64]:
    """The weights between words from those between a model's tokens, [target words, source words].

    Both are cuts of the same text, matched by their numbers of characters (SentencePiece's mark of
    a space aside). The weights of a word's source tokens are added, those of its target tokens
    averaged; a token that runs over several words is divided by characters, and one that is only a
    space belongs to the word after it. Nothing is renormalized: the weight on EOS is lost.

    Args:
        weights_TS: a row for each target token, a column for each source token; a row or column
            after them, EOS's, is left out.

    Raises:
        ValueError: tokens and words of different numbers of characters.
    """
    if not target_tokens or not source_tokens:
        # With an empty side, the model did not read the other side either.
        return np.zeros((len(target_words), len(source_words)))
    source_shares = word_shares(source_tokens, source_words)
    target_shares = word_shares(target_tokens, target_words)
    num_tokens = target_shares.sum(axis=0)
    averaging = (target_shares / np.where(num_tokens > 0, num_tokens, 1.0)).T
    weights_TS = weights_TS[: len(target_tokens), : len(source_tokens)]
    return np.asarray(averaging @ weights_TS.astype(np.float64) @ source_shares)


def score_attention(pairs: GoldPairs, *, shift: int = 0) -> AlignmentScore:
    """One link for each target position, to the source position with the largest weight, and the
    weights themselves against gold links, all of which are sure. Target position t gets the weights
    of the step `shift` later (negative: earlier).

    The weights must run over the tokens that the links are numbered in: without EOS on either side.
    Links of target positions that have no step `shift` later are left out, so a constant delay
    costs nothing. No predicted link: precision 0; nothing predicted and no gold link: no error.
    """
    num_predicted = num_gold = num_common = 0
    masses: list[float] = []
    for weights_TS, links in pairs:
        steps = range(len(weights_TS))
        predicted = {}
        for step, row_S in enumerate(weights_TS):
            if step - shift in steps and row_S.any():
                predicted[step] = int(row_S.argmax())
        gold: dict[int, set[int]] = {}
        for source, target in links:
            if target + shift in steps:
                gold.setdefault(target + shift, set()).add(source)
        for step, sources in gold.items():
            masses.append(float(weights_TS[step, sorted(sources)].sum()))
            num_gold += len(sources)
            num_common += predicted.get(step) in sources
        num_predicted += len(predicted)
    total = num_predicted + num_gold
    return AlignmentScore(
        error_rate=1.0 - 2 * num_common / total if total else 0.0,
        precision=num_common / num_predicted if num_predicted else 0.0,
        recall=num_common / num_gold if num_gold else 0.0,
        mass=float(np.mean(masses)) if masses else float("nan"),
        num_pairs=len(pairs),
    )


def score_shifts(pairs: GoldPairs) -> dict[int, AlignmentScore]:
    """`score_attention` for each of `SHIFTS`."""
    return {shift: score_attention(pairs, shift=shift) for shift in SHIFTS}
