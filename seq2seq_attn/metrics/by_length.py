"""Sentence pairs by length: half-open buckets, each to be scored as a corpus of its own.

Length is counted in the tokens of one named tokenizer, the same for every system compared. A
bucket's score is that of its summed statistics, never a mean of sentence scores; the buckets' sums
add up to the corpus's.
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
"""up to 8, 9-11, 12-14, 15-17, 18-20, 21 and more German tokens: enough pairs in each when the test
sets are pooled"""
MIN_PAIRS = 50
"""the corpus score of fewer pairs is mostly noise"""
DEFAULT_NUM_BUCKETS = 6
MAX_BUCKETS = 100
_NUMBER = r"\s*(\d{1,9})\s*"


@dataclass(frozen=True, eq=False)
class Bucket:
    """The sentence pairs whose length lies in [lower, upper); `upper` None: no upper end."""

    lower: int
    upper: int | None
    indices: IntArray

    def __len__(self) -> int:
        return len(self.indices)

    @property
    def label(self) -> str:
        """`up to 8`, `9-11`, `12`, `21 and more`, `all`."""
        if self.upper is None:
            return f"{self.lower} and more" if self.lower > 0 else "all"
        last = self.upper - 1
        if self.lower <= 0:
            return f"up to {last}"
        return f"{self.lower}-{last}" if last > self.lower else f"{last}"

    @property
    def is_thin(self) -> bool:
        """Whether it has too few pairs for its score to be trusted."""
        return len(self) < MIN_PAIRS

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        bounds = {"lower": self.lower, "upper": self.upper}
        return {"label": self.label, **bounds, "num_pairs": len(self), "is_thin": self.is_thin}


def parse_edges(text: str) -> tuple[int, ...] | int:
    """The edges of `9,12,15`, each the first length of a bucket; of `quantiles:6`, the number of
    quantiles. Raises UsageError: not edges or quantiles, edges that do not rise, or more than
    `MAX_BUCKETS` buckets."""
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
    """Edges that cut the lengths into at most `num_buckets` buckets of about equal size (fewer
    where lengths tie)."""
    quantiles = np.quantile(lengths, np.arange(1, num_buckets) / num_buckets)
    edges = {int(edge) for edge in np.ceil(quantiles)}
    return tuple(sorted(edge for edge in edges if lengths.min() < edge <= lengths.max()))


def make_buckets(lengths: IntArray, edges: Sequence[int], *, merge_below: int = 0) -> list[Bucket]:
    """The non-empty buckets, shortest first; those under `merge_below` pairs are joined to their
    smaller neighbor."""
    buckets = []
    numbers = np.digitize(lengths, edges)
    bounds = zip([0, *edges], [*edges, None], strict=True)
    for number, (lower, upper) in enumerate(bounds):
        buckets.append(Bucket(lower, upper, np.flatnonzero(numbers == number)))
    while len(buckets) > 1:
        sizes = [len(bucket) for bucket in buckets]
        thin = sizes.index(min(sizes))
        if sizes[thin] >= merge_below:
            break
        # the smaller neighbor; the left one where they are equal
        left = thin
        if thin == len(sizes) - 1 or (thin > 0 and sizes[thin - 1] <= sizes[thin + 1]):
            left = thin - 1
        first, second = buckets[left : left + 2]
        indices = np.sort(np.concatenate([first.indices, second.indices]))
        buckets[left : left + 2] = [Bucket(first.lower, second.upper, indices)]
    return [bucket for bucket in buckets if len(bucket)]
