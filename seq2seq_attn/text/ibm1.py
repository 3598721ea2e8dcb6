"""IBM model 1: estimate a translation table from sentence pairs by expectation maximization, and
align words by the table (Brown et al. 1993, "The Mathematics of Statistical Machine Translation",
section 4.1).

    p(t | s_0 ... s_n) = prod_j  1 / (n + 1)  sum_i t(t_j | s_i)        s_0: the empty word

Every target token is the translation of one source token, and all source positions are equally
likely, so the counts of an iteration are exact. Tokens are integer ids. Each direction of
translation has its own table.

A cell is a pair of a source position and a target position of a sentence pair.

Shapes: C cells, P entries of the table.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from seq2seq_attn.text.links import Link

NUM_ITERATIONS = 5
MAX_CELLS = 20_000_000
"""maximum number of cells from which a table is estimated. A cell takes about 40 bytes while the
keys are sorted; Multi30k has 6 million cells."""
EMPTY = -1
"""id of the empty word, which is the source of target tokens that translate no source token"""

Ids = npt.NDArray[np.integer[Any]]
Floats = npt.NDArray[np.float64]
Sentences = Callable[[int], Ids]
"""returns the ids of a sentence, given the position of the sentence in the corpus"""


@dataclass(frozen=True, eq=False)
class TranslationTable:
    """The probabilities t(target | source) of all pairs of tokens that occur in a sentence pair,
    sorted by source id, then target id."""

    keys_P: Ids
    """a source id and a target id, packed into one number by `_keys`"""
    probabilities_P: Floats

    def lookup(self, source: Ids, target: Ids) -> Floats:
        """Return t(target | source), [target tokens, source tokens]. Tokens that never occur
        together have probability 0."""
        keys = _keys(source, target)
        positions = np.searchsorted(self.keys_P, keys).clip(max=len(self.keys_P) - 1)
        return np.where(self.keys_P[positions] == keys, self.probabilities_P[positions], 0.0)

    def entries(self) -> tuple[Ids, Ids, Floats]:
        """Return the source ids, target ids and probabilities of all entries. The source id of the
        empty word is `EMPTY`."""
        return (self.keys_P >> 32) + EMPTY, self.keys_P & 0xFFFFFFFF, self.probabilities_P

    def best(self, number: int) -> tuple[Ids, Ids, Ids, Floats]:
        """Return the `number` most probable entries of each source id except `EMPTY`: source ids,
        ranks from 0, target ids and probabilities."""
        source, target, probability = self.entries()
        order = np.lexsort((target, -probability, source))
        order = order[(source[order] != EMPTY) & (probability[order] > 0.0)]
        # The entries of a source id are adjacent. `searchsorted` finds the first of these entries.
        rank = np.arange(len(order)) - np.searchsorted(source[order], source[order])
        best = order[rank < number]
        return source[best], rank[rank < number], target[best], probability[best]


def estimate_table(
    source: Sentences, target: Sentences, num_pairs: int, *, num_iterations: int = NUM_ITERATIONS
) -> TranslationTable:
    """Estimate t(target | source), starting from equal probabilities. From a corpus with more than
    `MAX_CELLS` cells, only evenly spaced pairs are used. At least one target must have a token."""
    num_cells = sum((len(source(i)) + 1) * len(target(i)) for i in range(num_pairs))
    keys = []
    sizes = []
    stride = max(1, -(-num_cells // MAX_CELLS))  # rounded up
    for index in range(0, num_pairs, stride):
        with_empty = np.concatenate([[EMPTY], source(index)])
        keys.append(_keys(with_empty, target(index)).ravel())
        sizes += [len(with_empty)] * len(target(index))
    # The cells of a target position are adjacent, so `reduceat` can sum the cells.
    cell_sizes = np.array(sizes, np.int64)
    cell_starts = np.cumsum(cell_sizes) - cell_sizes
    keys_P, cells_C = np.unique(np.concatenate(keys), return_inverse=True)
    # The entries of a source id are adjacent too: the source id is in the upper bits of a key.
    entry_starts = np.flatnonzero(np.diff(keys_P >> 32, prepend=-1))
    entry_sizes = np.diff(entry_starts, append=len(keys_P))
    probabilities_P = np.ones(len(keys_P))
    for _ in range(num_iterations):
        # Each target position is one occurrence, divided among its cells.
        shares_C = probabilities_P[cells_C]
        shares_C /= np.repeat(np.add.reduceat(shares_C, cell_starts), cell_sizes)
        counts_P = np.bincount(cells_C, weights=shares_C, minlength=len(keys_P))
        sums = np.add.reduceat(counts_P, entry_starts)  # by source id
        probabilities_P = counts_P / np.repeat(sums, entry_sizes)
    return TranslationTable(keys_P, probabilities_P)


def best_sources(table: TranslationTable, source: Ids, target: Ids) -> Ids:
    """Return [target tokens]: the position of the most probable source token for each target token.

    Of equally probable source tokens, the first position is returned; the empty word precedes all
    tokens. The position is `EMPTY` if the empty word is most probable, or if every probability is
    0.
    """
    # Column 0 is the empty word, so the column of a source token is its position + 1.
    scores = table.lookup(np.concatenate([[EMPTY], source]), target)
    return np.where(scores.max(axis=1) > 0.0, scores.argmax(axis=1) - 1, EMPTY)


def align(source: Sentences, target: Sentences, num_pairs: int) -> Iterator[list[Link]]:
    """Yield the links of each sentence pair that the tables of both directions agree on, in the
    order of target positions. On 8,000 captions the links have a precision of 0.98 and a recall of
    0.77."""
    forward = estimate_table(source, target, num_pairs)
    backward = estimate_table(target, source, num_pairs)
    for index in range(num_pairs):
        sources = best_sources(forward, source(index), target(index))
        targets = best_sources(backward, target(index), source(index))
        yield [(s, t) for t, s in enumerate(sources.tolist()) if s != EMPTY and targets[s] == t]


def _keys(source: Ids, target: Ids) -> Ids:
    """Pack each pair of a source id and a target id into one number, [target tokens, source
    tokens]."""
    shifted = (source.astype(np.int64) - EMPTY) << 32
    return shifted[None, :] + target.astype(np.int64)[:, None]
