"""Length ratios of the training pairs: target tokens per source token, and the limit on translations that follows."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from seq2seq_attn.config import LEAST_LENGTH_RATIO
from seq2seq_attn.data.store import PairStore
from seq2seq_attn.limits import MAX_LENGTH_RATIO

_ROOM = 1.25
"""Translations may be longer than the training references by this factor."""
_QUANTILES = (1, 50, 99)


def limiting_ratio(pairs: PairStore, *, extra: int, num_joined: int = 1) -> float:
    """The ratio r for which a limit of r * source tokens + `extra` cuts no training target (EOS included), with some
    room. It also holds for `num_joined` concatenated pairs, which get `extra` only once."""
    source_lengths, needed = pairs.source_lengths, pairs.target_lengths + 1 - extra / num_joined
    is_pair = source_lengths > 0
    smallest = float((needed[is_pair] / source_lengths[is_pair]).max(initial=0.0))
    ratio = math.ceil(100 * _ROOM * smallest) / 100
    return min(max(ratio, LEAST_LENGTH_RATIO), MAX_LENGTH_RATIO)


def describe_ratios(pairs: PairStore) -> str:
    """One line with quantiles of the ratios, and the highest ratio with its lengths."""
    source_lengths, target_lengths = pairs.source_lengths, pairs.target_lengths
    ratios: npt.NDArray[np.float64] = target_lengths / source_lengths
    quantiles = np.percentile(ratios, _QUANTILES, method="inverted_cdf").tolist()
    of_pairs = ", ".join(f"{percent} % up to {value:.2f}" for percent, value in zip(_QUANTILES, quantiles, strict=True))
    highest = int(ratios.argmax())
    lengths = f"{target_lengths[highest]} to {source_lengths[highest]} tokens"
    return f"target tokens per source token, pairs kept in train: {of_pairs}, highest {ratios[highest]:.2f} ({lengths})"
