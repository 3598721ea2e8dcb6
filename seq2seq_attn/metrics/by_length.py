"""Divide sentence pairs into buckets by length.

A bucket holds the sentence pairs whose length lies in a half-open range, and is scored as a corpus:
its score is computed from the sum of its sentences' statistics, and is not a mean of sentence
scores. The same tokenizer counts the lengths for all systems.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from seq2seq_attn.config import shorten
from seq2seq_attn.errors import UsageError
from seq2seq_attn.metrics.bleu import IntArray

MULTI30K_EDGES = (9, 12, 15, 18, 21)
"""First lengths of the buckets for 9-11, 12-14, 15-17, 18-20, and 21 and more German tokens. With
the pairs of all test sets, each bucket has enough pairs."""
MIN_PAIRS = 50
"""the least number of sentence pairs whose corpus score is more than noise"""
DEFAULT_NUM_BUCKETS = 6
MAX_BUCKETS = 100
_NUMBER = r"\s*(\d{1,9})\s*"


@dataclass(frozen=True, eq=False)
class Bucket:
    """The sentence pairs whose length lies in [lower, upper)."""

    lower: int
    upper: int | None
    """None if the range has no upper end"""
    indices: IntArray
    """the indices of the bucket's sentence pairs in the corpus"""
    num_distinct: int | None = None
    """the number of distinct sentence pairs; None if copies were not counted"""

    def __len__(self) -> int:
        return len(self.indices)

    @property
    def label(self) -> str:
        """Return the range as text: `up to 8`, `9-11`, `12`, `21 and more` or `all`."""
        if self.upper is None:
            return f"{self.lower} and more" if self.lower > 0 else "all"
        last = self.upper - 1
        if self.lower <= 0:
            return f"up to {last}"
        return f"{self.lower}-{last}" if last > self.lower else f"{last}"

    @property
    def is_thin(self) -> bool:
        """Tell whether the bucket has too few distinct pairs for its score to be trusted."""
        number = len(self) if self.num_distinct is None else self.num_distinct
        return number < MIN_PAIRS

    def to_dict(self) -> dict[str, Any]:
        """Return the range and the number of pairs as plain values, for JSON."""
        return {
            "label": self.label,
            "lower": self.lower,
            "upper": self.upper,
            "num_pairs": len(self),
            "is_thin": self.is_thin,
        }


def parse_edges(text: str) -> tuple[int, ...] | int:
    """Parse the value of `--by-length`.

    Returns:
        For `9,12,15`, the edges, each the first length of a bucket. For `quantiles:6`, the number
        of quantiles.

    Raises:
        UsageError: The text is of neither form, the edges do not rise, or there are more than
            `MAX_BUCKETS` buckets.
    """
    quantiles = re.fullmatch(rf"\s*quantiles\s*:{_NUMBER}", text)
    if quantiles and 1 <= int(quantiles[1]) <= MAX_BUCKETS:
        return int(quantiles[1])
    if re.fullmatch(f"{_NUMBER}(,{_NUMBER})*", text):
        edges = tuple(int(edge) for edge in text.split(","))
        is_rising = all(lower < upper for lower, upper in pairwise((0, *edges)))
        if is_rising and len(edges) < MAX_BUCKETS:
            return edges
    raise UsageError(
        f"--by-length {shorten(text)}: expected rising first lengths of buckets, for example "
        f"9,12,15,18,21, or quantiles:6; at most {MAX_BUCKETS} buckets"
    )


def quantile_edges(lengths: IntArray, num_buckets: int = DEFAULT_NUM_BUCKETS) -> tuple[int, ...]:
    """Return edges that divide the lengths into buckets of about equal size.

    There are `num_buckets` buckets, or fewer if many lengths are equal.
    """
    quantiles = np.quantile(lengths, np.arange(1, num_buckets) / num_buckets)
    edges = {int(edge) for edge in np.ceil(quantiles)}
    return tuple(sorted(edge for edge in edges if lengths.min() < edge <= lengths.max()))


def make_buckets(lengths: IntArray, edges: Sequence[int]) -> list[Bucket]:
    """Return the buckets that have sentence pairs, shortest first."""
    buckets = []
    numbers = np.digitize(lengths, edges)
    bounds = zip([0, *edges], [*edges, None], strict=True)
    for number, (lower, upper) in enumerate(bounds):
        indices = np.flatnonzero(numbers == number)
        if len(indices):
            buckets.append(Bucket(lower, upper, indices))
    return buckets
