"""Describe a prepared corpus as text: numbers of pairs and tokens, and length ratios of training
pairs. Derive the limit on the length of translations (`search.max_length_ratio`) from the ratios.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from seq2seq_attn.config import LEAST_LENGTH_RATIO, Config
from seq2seq_attn.config.types import MAX_LENGTH_RATIO
from seq2seq_attn.data.store import PairStore, PreparedCorpus
from seq2seq_attn.text.tokenizers.base import SIDES

_ROOM = 1.25
"""Translations may be longer than the training references by this factor."""
_PERCENTAGES = (1, 50, 99)
"""the percentiles of the length ratio that are shown"""
_PAIR_COUNTS = {
    "pairs_read": "read",
    "pairs_kept": "kept",
    "blank": "blank",
    "over_long": "over-long",
    "ratio_outliers": "ratio",
    "copies": "copies",
    "duplicates": "duplicates",
    "overlap_pairs": "in train",
    "overlap_sources": "source in train",
}
"""the column headings of the table of pairs, by key in `SplitBuilder.audit`"""


def audit_report(prepared: PreparedCorpus) -> str:
    """Return a text for a terminal: the numbers of pairs that were read, kept and dropped, and
    statistics of tokens, length ratios and vocabularies."""
    meta = prepared.meta
    config = meta["config"]
    train = prepared.audit["train"]
    joint = " (one vocabulary for both)" if config["vocab"]["joint"] else ""
    lines = [
        f"{prepared.directory}  ({config['source_language']} -> {config['target_language']})",
        "",
        *audit_tables(prepared.audit),
        "",
        describe_ratios(prepared.pairs("train")),
        "",
        f"dropped from train: {sum(train['dropped'].values()):,} of {train['pairs_read']:,} pairs",
        *[f"  {reason}" for reason in describe_dropped(train["dropped"], config)],
        "validation and test sets are kept whole; duplicates and overlaps are counted, never "
        "dropped",
        *meta["notes"],
        f"vocabulary: {len(prepared.source_vocab):,} and {len(prepared.target_vocab):,} ids, "
        f"source and target{joint}",
    ]
    return "\n".join(lines)


def describe_dropped(dropped: Mapping[str, int], limits: Mapping[str, Any]) -> list[str]:
    """Return a description for each reason why pairs are dropped, such as `3 because a side is
    blank`. Reasons without pairs are left out.

    Args:
        dropped: numbers of dropped pairs by fault (`builder.FAULTS`).
        limits: the settings `max_length` and `max_length_ratio`; further settings are ignored.
    """
    reasons = {
        "blank": "a side is blank",
        "over_long": f"a side has more than {limits['max_length']} tokens",
        "ratio_outliers": (
            f"one side has more than {limits['max_length_ratio']:g} times the other's tokens"
        ),
    }
    described = []
    for fault, reason in reasons.items():
        if dropped[fault]:
            described.append(f"{dropped[fault]:,} because {reason}")
    return described


def audit_tables(audit: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Return two tables as lines of text: counts of all pairs, and counts of the tokens in the
    kept pairs.

    Args:
        audit: the result of `SplitBuilder.audit` for each split.
    """
    pairs = [["all pairs", *_PAIR_COUNTS.values()]]
    tokens = [["kept pairs", "tokens", "types", "longest", "OOV"]]
    for split, counts in audit.items():
        row = [split]
        for key in _PAIR_COUNTS:
            is_overlap = key.startswith("overlap")  # the training split has none
            row.append("-" if is_overlap and split == "train" else f"{counts[key]:,}")
        pairs.append(row)
        for side in SIDES:
            sizes = [f"{counts[side][key]:,}" for key in ("tokens", "types", "longest")]
            tokens.append([f"{split} {side}", *sizes, f"{100 * counts[side]['oov_rate']:.2f} %"])
    return [*_aligned(pairs), "", *_aligned(tokens)]


def _aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """Join each row to a line with aligned columns. The first column is aligned at the left, the
    other columns at the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = []
    for row in rows:
        cells = [cell.rjust(width) for cell, width in zip(row, widths, strict=True)]
        cells[0] = row[0].ljust(widths[0])
        lines.append("  ".join(cells))
    return lines


def with_length_limit(config: Config, pairs: PairStore) -> Config:
    """Return the configuration with a value for `search.max_length_ratio`. A missing value is
    computed from the training pairs, so that a run can translate without its corpus."""
    if config.search.max_length_ratio is not None:
        return config
    ratio = limiting_ratio(pairs, extra=config.search.max_length_extra)
    return config.model_copy(
        update={"search": config.search.model_copy(update={"max_length_ratio": ratio})}
    )


def limiting_ratio(pairs: PairStore, *, extra: int) -> float:
    """Return the ratio r in the length limit of translations: r * source tokens + `extra`.

    The smallest ratio that allows every training target with its EOS is multiplied by `_ROOM`,
    rounded up to two decimal places, and then limited to the range from `LEAST_LENGTH_RATIO` to
    `MAX_LENGTH_RATIO`.
    """
    source_lengths = pairs.source_lengths
    lengths_with_eos = pairs.target_lengths + 1
    has_source = source_lengths > 0  # false for a language model
    smallest_ratios = (lengths_with_eos - extra)[has_source] / source_lengths[has_source]
    smallest = float(smallest_ratios.max(initial=0.0))
    ratio = math.ceil(100 * _ROOM * smallest) / 100
    return min(max(ratio, LEAST_LENGTH_RATIO), MAX_LENGTH_RATIO)


def describe_ratios(pairs: PairStore) -> str:
    """Return a line with percentiles of the length ratio (target tokens per source token), and the
    highest ratio with the lengths of its pair."""
    source_lengths = pairs.source_lengths
    target_lengths = pairs.target_lengths
    if not source_lengths.any():
        return "no source: a language model"
    ratios: npt.NDArray[np.float64] = target_lengths / source_lengths
    percentiles = np.percentile(ratios, _PERCENTAGES, method="inverted_cdf").tolist()
    described = ", ".join(
        f"{percentage} % up to {ratio:.2f}"
        for percentage, ratio in zip(_PERCENTAGES, percentiles, strict=True)
    )
    highest = int(ratios.argmax())
    lengths = f"{target_lengths[highest]} to {source_lengths[highest]} tokens"
    return (
        f"target tokens per source token, pairs kept in train: {described}, highest "
        f"{ratios[highest]:.2f} ({lengths})"
    )
