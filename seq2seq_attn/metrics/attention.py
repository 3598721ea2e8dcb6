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
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from seq2seq_attn.files import finite
from seq2seq_attn.text.links import Link, word_shares

Weights = npt.NDArray[np.floating[Any]]
GoldPairs = Sequence[tuple[Weights, Sequence[Link]]]
"""Of sentence pairs, the attention between the words that gold links are numbered in, [T, S], and
these links."""
SHIFTS = (-1, 0, 1)
"""target positions by which attention is shifted before it is compared with gold links
(`shift_weights`)"""
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
        """Plain values, for JSON."""
        values = {
            **asdict(self),
            "gold": [{"shift": n, **finite(asdict(score))} for n, score in self.gold.items()],
        }
        return (
            values if self.gold else {key: value for key, value in values.items() if key != "gold"}
        )


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
    """The statistics of several sets as one; with attention and gold links if all parts have
    them."""
    counts = [part.attention_N5 for part in parts if part.attention_N5 is not None]
    gold = [part.gold for part in parts if part.gold is not None]
    return AttentionStatistics(
        np.concatenate([part.overlap_N4 for part in parts]),
        np.concatenate(counts) if len(counts) == len(parts) else None,
        [pair for pairs in gold for pair in pairs] if len(gold) == len(parts) else None,
    )


def attention_counts(
    weights_TS: Weights, word_weights_TS: Weights
) -> tuple[float, float, float, float, float]:
    """Counts of one pair: summed entropies in nats, target tokens, dropped source words, repeated
    ones, all source words.

    Args:
        weights_TS: over tokens, with EOS on both sides as the model had it: for the entropy.
        word_weights_TS: the same over words, for the coverage.
    """
    weights, received = (
        weights_TS.astype(np.float64),
        word_weights_TS.astype(np.float64).sum(axis=0),
    )
    entropies_T = -np.sum(weights * np.log(np.where(weights > 0, weights, 1.0)), axis=1)
    return (
        float(entropies_T.sum()),
        float(len(weights_TS)),
        float((received < DROPPED_BELOW).sum()),
        float((received > REPEATED_ABOVE).sum()),
        float(len(received)),
    )


def overlap_counts(
    hypothesis: Sequence[str], reference: Sequence[str]
) -> tuple[int, int, int, int]:
    """Counts of one pair: reference words missing, reference words, hypothesis words in excess,
    hypothesis words; as multisets, lower-cased. Tokens without a letter or digit (punctuation) are
    not counted."""
    written, expected = (
        Counter(word.lower() for word in words if any(map(str.isalnum, word)))
        for words in (hypothesis, reference)
    )
    return (
        (expected - written).total(),
        expected.total(),
        (written - expected).total(),
        written.total(),
    )


def shift_weights(weights_TS: Weights, shift: int) -> Weights:
    """The weights that target position t had `shift` steps later (negative: earlier). Positions
    without such a step get a row of zeros."""
    shifted_TS = np.zeros_like(weights_TS)
    for target in range(max(0, -shift), min(len(weights_TS), len(weights_TS) - shift)):
        shifted_TS[target] = weights_TS[target + shift]
    return shifted_TS


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
    num_target, num_source = len(target_tokens), len(source_tokens)
    if (
        not num_target or not num_source
    ):  # an empty side: the model did not read the other one either
        return np.zeros((len(target_words), len(source_words)))
    source_shares = word_shares(source_tokens, source_words)
    target_shares = word_shares(target_tokens, target_words)
    num_tokens = target_shares.sum(axis=0)
    averaging = (target_shares / np.where(num_tokens > 0, num_tokens, 1.0)).T
    return np.asarray(
        averaging @ weights_TS[:num_target, :num_source].astype(np.float64) @ source_shares
    )


def score_attention(
    weights: Sequence[Weights], sure: Sequence[Iterable[Link]], *, shift: int = 0
) -> AlignmentScore:
    """One link for each target position, to the source position with the largest weight, and the
    weights themselves against gold links, all of which are sure, after `shift_weights(..., shift)`.

    `weights` must run over the tokens that the links are numbered in: without EOS on either side.
    Links of target positions that have no step `shift` later are left out, so a constant delay
    costs nothing. No predicted link: precision 0; nothing predicted and no gold link: no error.
    Raises ValueError: lists of different lengths.
    """
    num_predicted = num_gold = num_common = 0
    masses: list[float] = []
    for weights_TS, links in zip(weights, sure, strict=True):
        shifted_TS = shift_weights(weights_TS, shift)
        predicted = {
            (int(row_S.argmax()), target) for target, row_S in enumerate(shifted_TS) if row_S.any()
        }
        sources: dict[int, set[int]] = {}
        for source, target in links:
            if 0 <= target + shift < len(weights_TS):
                sources.setdefault(target, set()).add(source)
        gold = {(source, target) for target in sources for source in sources[target]}
        masses += [
            float(shifted_TS[target, sorted(linked)].sum()) for target, linked in sources.items()
        ]
        num_predicted, num_gold = num_predicted + len(predicted), num_gold + len(gold)
        num_common += len(predicted & gold)
    total = num_predicted + num_gold
    return AlignmentScore(
        error_rate=1.0 - 2 * num_common / total if total else 0.0,
        precision=num_common / num_predicted if num_predicted else 0.0,
        recall=num_common / num_gold if num_gold else 0.0,
        mass=float(np.mean(masses)) if masses else float("nan"),
        num_pairs=len(weights),
    )


def score_shifts(pairs: GoldPairs) -> dict[int, AlignmentScore]:
    """`score_attention` for each of `SHIFTS`."""
    weights, links = (
        [weights_TS for weights_TS, _ in pairs],
        [pair_links for _, pair_links in pairs],
    )
    return {shift: score_attention(weights, links, shift=shift) for shift in SHIFTS}
