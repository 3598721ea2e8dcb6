"""Length ratios of the training pairs: target tokens per source token, and the limit on translations that follows."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from seq2seq_attn.config import LEAST_LENGTH_RATIO, Config
from seq2seq_attn.config.types import MAX_LENGTH_RATIO
from seq2seq_attn.data.store import PairStore

_ROOM = 1.25
"""Translations may be longer than the training references by this factor."""
_QUANTILES = (1, 50, 99)


def limiting_ratio(pairs: PairStore, *, extra: int, is_reverse: bool = False) -> float:
    """The ratio r for which a limit of r * source tokens + `extra` cuts no training target (EOS included), with some
    room. `is_reverse`: source and target are swapped."""
    source_lengths, target_lengths = pairs.source_lengths, pairs.target_lengths
    if is_reverse:
        source_lengths, target_lengths = target_lengths, source_lengths
    needed = target_lengths + 1 - extra
    is_pair = source_lengths > 0
    smallest = float((needed[is_pair] / source_lengths[is_pair]).max(initial=0.0))
    ratio = math.ceil(100 * _ROOM * smallest) / 100
    return min(max(ratio, LEAST_LENGTH_RATIO), MAX_LENGTH_RATIO)


def with_length_limit(config: Config, pairs: PairStore, *, is_reverse: bool = False) -> Config:
    """The configuration with `search.max_length_ratio` set, if necessary from the training pairs, so that a run is
    self-contained. `is_reverse`: the ratio is that of source to target tokens, and always from the pairs."""
    if config.search.max_length_ratio is not None and not is_reverse:
        return config
    ratio = limiting_ratio(pairs, extra=config.search.max_length_extra, is_reverse=is_reverse)
    return config.model_copy(update={"search": config.search.model_copy(update={"max_length_ratio": ratio})})


def describe_ratios(pairs: PairStore) -> str:
    """One line with quantiles of the ratios, and the highest ratio with its lengths."""
    source_lengths, target_lengths = pairs.source_lengths, pairs.target_lengths
    ratios: npt.NDArray[np.float64] = target_lengths / source_lengths
    quantiles = np.percentile(ratios, _QUANTILES, method="inverted_cdf").tolist()
    of_pairs = ", ".join(f"{percent} % up to {value:.2f}" for percent, value in zip(_QUANTILES, quantiles, strict=True))
    highest = int(ratios.argmax())
    lengths = f"{target_lengths[highest]} to {source_lengths[highest]} tokens"
    return f"target tokens per source token, pairs kept in train: {of_pairs}, highest {ratios[highest]:.2f} ({lengths})"
