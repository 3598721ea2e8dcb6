"""Alignment error rate: links read from attention against gold links, with and without a shift by a target position.

Links are (source position, target position) pairs, as in the Pharaoh format `0-0 1-2`. A weights array has shape
[T, S]: row t holds the attention of target position t. Koehn and Knowles 2017, "Six challenges for neural machine
translation", section 3.5, found models whose attention is off by one target position; hence the shift.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from seq2seq_attn.text.links import Link, shares_of_words

Weights = npt.NDArray[np.floating[Any]]
SHIFTS = (-1, 0, 1)
"""target positions by which attention is shifted before it is compared with gold links (`shift_weights`)"""


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
    """mean weight on possible links, over the target positions that have one; NaN when no weights were given"""
    num_pairs: int


@dataclass(frozen=True, eq=False)
class GoldAttention:
    """A model's attention on the references, by forced decoding, over the words that gold links are numbered in."""

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


def argmax_links(weights_TS: Weights) -> tuple[Link, ...]:
    """One link for each target position: to the source position with the largest weight (the first of equals)."""
    if weights_TS.size == 0:
        return ()
    return tuple((int(source), target) for target, source in enumerate(weights_TS.argmax(axis=1)))


def shift_weights(weights_TS: Weights, shift: int) -> Weights:
    """The weights that target position t had `shift` steps later (negative: earlier). Positions without such a step get
    a row of zeros."""
    shifted = np.zeros_like(weights_TS)
    length = len(weights_TS)
    for position in range(length):
        if 0 <= position + shift < length:
            shifted[position] = weights_TS[position + shift]
    return shifted


def words_from_tokens(
    weights_TS: Weights,
    source_tokens: Sequence[str],
    target_tokens: Sequence[str],
    source_words: Sequence[str],
    target_words: Sequence[str],
) -> npt.NDArray[np.float64]:
    """The weights between words from those between a model's tokens, [target words, source words].

    Both are cuts of the same text, matched by their numbers of characters (SentencePiece's mark of a space aside). The
    weights of a word's source tokens are added, those of its target tokens averaged; a token that runs over several
    words is divided by characters, and one that is only a space belongs to the word after it. Nothing is renormalized:
    the weight on EOS is lost.

    Args:
        weights_TS: a row for each target token, a column for each source token; a row or column after them, EOS's, is
            left out.

    Raises:
        ValueError: tokens and words of different numbers of characters, or weights that do not fit the tokens.
    """
    num_target, num_source = len(target_tokens), len(source_tokens)
    if weights_TS.shape[0] - num_target not in (0, 1) or weights_TS.shape[1] - num_source not in (0, 1):
        raise ValueError(f"weights of shape {weights_TS.shape} do not fit {num_target} and {num_source} tokens")
    if not num_target or not num_source:  # an empty side: the model did not read the other one either
        return np.zeros((len(target_words), len(source_words)))
    of_source, of_target = shares_of_words(source_tokens, source_words), shares_of_words(target_tokens, target_words)
    num_tokens = of_target.sum(axis=0)
    averaging = (of_target / np.where(num_tokens > 0, num_tokens, 1.0)).T
    return np.asarray(averaging @ weights_TS[:num_target, :num_source].astype(np.float64) @ of_source)


def score_links(predicted: Sequence[Iterable[Link]], gold: Sequence[Iterable[Link]]) -> AlignmentScore:
    """Corpus-level error rate, precision and recall, where all gold links are sure and no others are possible.

    No predicted link: precision 0; nothing predicted and no gold link: no error.
    """
    _check_lengths(len(predicted), len(gold))
    num_predicted = num_gold = num_common = 0
    for predicted_links, gold_links in zip(predicted, gold, strict=True):
        links, wanted = set(predicted_links), set(gold_links)
        num_predicted += len(links)
        num_gold += len(wanted)
        num_common += len(links & wanted)
    total = num_predicted + num_gold
    return AlignmentScore(
        error_rate=1.0 - 2 * num_common / total if total else 0.0,
        precision=num_common / num_predicted if num_predicted else 0.0,
        recall=num_common / num_gold if num_gold else 0.0,
        mass=float("nan"),
        num_pairs=len(predicted),
    )


def mass_on_links(weights: Sequence[Weights], links: Sequence[Iterable[Link]]) -> float:
    """The mean over the corpus's linked target positions of the weight that falls on their linked source positions.

    Raises:
        ValueError: a link outside its weights array.
    """
    _check_lengths(len(weights), len(links))
    masses: list[float] = []
    for weights_TS, sentence_links in zip(weights, links, strict=True):
        sources_of: dict[int, set[int]] = {}
        for source, target in sentence_links:
            if source >= weights_TS.shape[1] or target >= weights_TS.shape[0]:
                raise ValueError(f"link {source}-{target} lies outside weights of shape {weights_TS.shape}")
            sources_of.setdefault(target, set()).add(source)
        masses += [float(weights_TS[target, sorted(sources)].sum()) for target, sources in sources_of.items()]
    return float(np.mean(masses)) if masses else float("nan")


def score_attention(weights: Sequence[Weights], sure: Sequence[Iterable[Link]], *, shift: int = 0) -> AlignmentScore:
    """The arg-max links and the weights themselves against gold links, after `shift_weights(..., shift)`.

    `weights` must run over the tokens that the links are numbered in: without EOS on either side. Links of target
    positions that have no step `shift` later are left out, so a constant delay costs nothing.
    """
    shifted, gold = [], []
    for weights_TS, links in zip(weights, sure, strict=True):
        length = len(weights_TS)
        shifted.append(shift_weights(weights_TS, shift))
        gold.append(tuple(link for link in links if not shift or 0 <= link[1] + shift < length))
    predicted = [
        tuple(link for link in argmax_links(weights_TS) if weights_TS[link[1]].any()) for weights_TS in shifted
    ]
    return replace(score_links(predicted, gold), mass=mass_on_links(shifted, gold))


def _check_lengths(*lengths: int) -> None:
    if len(set(lengths)) != 1:
        raise ValueError(f"aligned lists of different lengths: {', '.join(map(str, lengths))}")
