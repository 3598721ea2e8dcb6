"""Statistics of attention: entropy, coverage, words that are left out or repeated, and alignment
error rate.

All values are computed from counts per sentence pair. The counts are summed over the pairs of a
bucket (a range of lengths), or over the pairs of several test sets.

Coverage (Tu et al. 2016, "Modeling coverage for neural machine translation") is the attention that
a source word gets from all target words together. A source word with hardly any attention counts as
dropped; a source word with the attention of several target words counts as repeated. Missing and
excess words are counted in the texts, which also works for models without attention.

Alignment error rate compares links read from attention with gold links. A link is a pair (source
position, target position), as in the Pharaoh format `0-0 1-2`. `attention_links` reads the links
everywhere: for `evaluate`, for `score --links`, and for the file of `--alignment`. Koehn and
Knowles 2017, "Six challenges for neural machine translation", section 3.5, found models whose
attention is off by one target position. Therefore attention is also compared after a shift by a
target position.

Shapes: N sentence pairs, T target positions, S source positions. Row t of `weights_TS` holds the
attention of target position t.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from seq2seq_attn.files import finite
from seq2seq_attn.text.links import Link, word_shares

Weights = npt.NDArray[np.floating[Any]]


class GoldPair(NamedTuple):
    """The attention of a sentence pair, with its gold links."""

    weights_TS: Weights
    """attention between the words whose positions gold links name, without the weights on EOS of
    the source"""
    possible: Sequence[Link]
    """the gold links, sure links among them"""
    sure: Sequence[Link]


GoldPairs = Sequence[GoldPair]
SHIFTS = (-1, 0, 1)
"""target positions by which attention is shifted before it is compared with gold links"""
DROPPED_BELOW = 0.2
"""a source word with less attention than this from all target words together counts as dropped"""
_ROUNDING = 1e-3
"""the largest difference of a sum of weights from 1 that is due to rounding"""
REPEATED_ABOVE = 2.0
"""a source word with more attention than this from all target words together counts as repeated"""


@dataclass(frozen=True)
class AlignmentScore:
    """Scores of a corpus's predicted links against its gold links; rates and shares in [0, 1]."""

    error_rate: float
    """AER (Och and Ney 2003): 1 - (|A and S| + |A and P|) / (|A| + |S|), with the predicted links
    A, the sure links S, and the possible links P, which include S"""
    precision: float
    """share of the predicted links that are possible"""
    recall: float
    """share of the sure links that are predicted"""
    mass: float
    """mean attention on the possible links of a target position, over the positions that have a
    link; NaN without links"""
    num_pairs: int


@dataclass(frozen=True)
class AttentionScore:
    """Attention statistics of some sentence pairs.

    A value is None if the model has no attention, or if there are no tokens or words to count.
    """

    entropy: float | None
    """nats per target token, EOS included; mass outside the source counts as one more position"""
    dropped: float | None
    """share of the source words that get less attention than `DROPPED_BELOW`"""
    repeated: float | None
    """share of the source words that get more attention than `REPEATED_ABOVE`"""
    missing: float | None
    """share of the reference's words that the hypothesis lacks"""
    excess: float | None
    """share of the hypothesis's words that the reference lacks"""
    gold: dict[int, AlignmentScore] = field(default_factory=dict)
    """for each shift, the score against gold links; empty without gold links"""

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON, without the key `gold` if there are no gold links."""
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
    """the `overlap_counts` of each pair"""
    attention_N5: npt.NDArray[np.float64]
    """the `attention_counts` of each pair; 0 if the model has no attention over source positions"""
    gold: GoldPairs | None = None
    """attention with gold links; None if there are no gold links, or if the model has no attention
    over source positions"""

    def subset(self, indices: npt.NDArray[np.int64]) -> AttentionStatistics:
        """Return the counts of the sentence pairs at `indices`, for example of a bucket."""
        gold = None
        if self.gold is not None:
            gold = [self.gold[index] for index in indices.tolist()]
        return AttentionStatistics(self.overlap_N4[indices], self.attention_N5[indices], gold)

    def score(self) -> AttentionScore:
        """Return the statistics of all sentence pairs together."""
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
    """Concatenate the statistics of several sets. The result has gold links only if all sets have
    gold links."""
    overlap_N4 = np.concatenate([statistics.overlap_N4 for statistics in sets])
    attention_N5 = np.concatenate([statistics.attention_N5 for statistics in sets])
    gold: list[GoldPair] = []
    for statistics in sets:
        if statistics.gold is None:
            return AttentionStatistics(overlap_N4, attention_N5)
        gold += statistics.gold
    return AttentionStatistics(overlap_N4, attention_N5, gold)


def to_shares(weights_TS: Weights) -> Weights:
    """Divide each row by its sum if the sum is above 1, which weights without normalization may
    have."""
    weights_TS = weights_TS.astype(np.float64)
    sums_T1 = weights_TS.sum(axis=1, keepdims=True)
    return weights_TS / np.where(sums_T1 > 1.0 + _ROUNDING, sums_T1, 1.0)


def attention_counts(
    weights_TS: Weights, word_weights_TS: Weights
) -> tuple[float, int, int, int, int]:
    """Return the sum of the entropies of a sentence pair in nats, the number of target tokens, and
    the numbers of dropped, repeated and all source words.

    Args:
        weights_TS: Attention between tokens, EOS included, of which entropy is computed.
        word_weights_TS: Attention between words, of which coverage is computed.
    """
    weights_TS = to_shares(weights_TS)
    entropies_T = -np.sum(weights_TS * np.log(np.where(weights_TS > 0, weights_TS, 1.0)), axis=1)
    outside_T = 1.0 - weights_TS.sum(axis=1)
    outside_T = outside_T[outside_T > _ROUNDING]
    received_S = to_shares(word_weights_TS).sum(axis=0)
    num_dropped = int(np.sum(received_S < DROPPED_BELOW))
    num_repeated = int(np.sum(received_S > REPEATED_ABOVE))
    entropy = float(entropies_T.sum() - np.sum(outside_T * np.log(outside_T)))
    return entropy, len(weights_TS), num_dropped, num_repeated, len(received_S)


def overlap_counts(hypothesis: Sequence[str], reference: Sequence[str]) -> tuple[int, ...]:
    """Count the words that differ between the hypothesis and the reference of one sentence pair.

    Words are lower-cased and compared as multisets. A token without a letter or digit, such as a
    punctuation mark, is not a word.

    Returns:
        The number of reference words that the hypothesis lacks, the number of reference words, the
        number of hypothesis words that the reference lacks, and the number of hypothesis words.
    """
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
) -> Weights:
    """Turn attention between a model's tokens into attention between words.

    Tokens and words must be two splits of the same text. Tokens are assigned to words by counting
    characters, without SentencePiece's mark of a space. The weights of a word's source tokens are
    added. The weights of a word's target tokens are averaged. The weight of a token that belongs to
    several words is divided in proportion to characters. A token that is only a space belongs to
    the next word. The weights are not renormalized, so the weight on EOS is lost.

    Args:
        weights_TS: Attention with a row for each target token and a column for each source token. A
            further row or column, of EOS, is dropped.

    Returns:
        The attention, [target words, source words].

    Raises:
        ValueError: Tokens and words have different numbers of characters.
    """
    if not target_tokens or not source_tokens:
        # If one side of a pair is empty, the model did not read the other side.
        return np.zeros((len(target_words), len(source_words)))
    source_shares = word_shares(source_tokens, source_words)
    target_shares = word_shares(target_tokens, target_words)
    num_tokens = target_shares.sum(axis=0)
    averaging = (target_shares / np.where(num_tokens > 0, num_tokens, 1.0)).T
    weights_TS = weights_TS[: len(target_tokens), : len(source_tokens)]
    return np.asarray(averaging @ weights_TS.astype(np.float64) @ source_shares)


def attention_links(weights_TS: Weights) -> list[Link]:
    """Return the links between words that are predicted from attention, in target order.

    A target word is linked to the source word with the largest weight, even if EOS of the source
    has a larger weight. On the embedded captions, this rule finds two more of 100 gold links than a
    rule without a link in such a case, and the share of right links is equal. A target word without
    attention has no link.

    Args:
        weights_TS: Attention between words, without the weights on EOS of the source.
    """
    return [(int(row_S.argmax()), target) for target, row_S in enumerate(weights_TS) if row_S.any()]


def score_attention(pairs: GoldPairs, *, shift: int = 0) -> AlignmentScore:
    """Score attention against gold links.

    The predicted links are `attention_links`. With a shift, target position t gets the weights of
    decoder step t + `shift`. Gold links of target positions without such a step are not counted, so
    a model with constant delay can reach a perfect score. Precision is 0 without predicted links.
    The error rate is 0 if there are neither predicted nor sure links.
    """
    num_predicted = num_sure = num_common_sure = num_common_possible = 0
    masses = []
    for weights_TS, all_possible, all_sure in pairs:
        steps = range(len(weights_TS))
        predicted = {link for link in attention_links(weights_TS) if link[1] - shift in steps}
        possible = _shifted(all_possible, shift, steps)
        sure = _shifted(all_sure, shift, steps)
        linked: dict[int, list[int]] = {}
        for source, step in sorted(possible):
            linked.setdefault(step, []).append(source)
        for step, sources in linked.items():
            masses.append(float(weights_TS[step, sources].sum()))
        num_predicted += len(predicted)
        num_sure += len(sure)
        num_common_sure += len(predicted & sure)
        num_common_possible += len(predicted & possible)
    total = num_predicted + num_sure
    num_common = num_common_sure + num_common_possible
    return AlignmentScore(
        error_rate=1.0 - num_common / total if total else 0.0,
        precision=num_common_possible / num_predicted if num_predicted else 0.0,
        recall=num_common_sure / num_sure if num_sure else 0.0,
        mass=float(np.mean(masses)) if masses else float("nan"),
        num_pairs=len(pairs),
    )


def _shifted(links: Sequence[Link], shift: int, steps: range) -> set[Link]:
    """Return the links with the decoder step in place of the target position."""
    moved = {(source, target + shift) for source, target in links}
    return {(source, step) for source, step in moved if step in steps}


def score_shifts(pairs: GoldPairs) -> dict[int, AlignmentScore]:
    """Return `score_attention` of the pairs for each shift in `SHIFTS`."""
    return {shift: score_attention(pairs, shift=shift) for shift in SHIFTS}
