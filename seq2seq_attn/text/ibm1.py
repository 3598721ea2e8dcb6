"""IBM model 1: a translation table estimated from sentence pairs by expectation maximization, and
the links that follow from it (Brown et al. 1993, "The Mathematics of Statistical Machine
Translation", section 4.1).

    p(t | s_0 ... s_n) = prod_j  1 / (n + 1)  sum_i t(t_j | s_i)        s_0: the empty word

Every target token comes from one source token, and all positions are equally likely, so the counts
of an iteration are exact. Tokens are whole numbers; each direction has a table of its own.

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
"""pairs of a source and a target position that a table is estimated from: each takes about 40 bytes
while keys are sorted, and Multi30k has 6 million"""
EMPTY = -1
"""id of the empty word, the source of target tokens that translate nothing"""

Ids = npt.NDArray[np.integer[Any]]
Floats = npt.NDArray[np.float64]
Sentences = Callable[[int], Ids]
"""the ids of a sentence by its position"""


@dataclass(frozen=True, eq=False)
class TranslationTable:
    """t(target | source) of the tokens that occur together, sorted by source, then target."""

    keys_P: Ids
    """source and target as one number"""
    probabilities_P: Floats

    def lookup(self, source: Ids, target: Ids) -> Floats:
        """[target tokens, source tokens], t(target | source); 0 for tokens that never occur
        together."""
        keys = _keys(source, target)
        if not len(self.keys_P):
            return np.zeros(keys.shape)
        positions = np.searchsorted(self.keys_P, keys).clip(max=len(self.keys_P) - 1)
        return np.where(self.keys_P[positions] == keys, self.probabilities_P[positions], 0.0)

    def entries(self) -> tuple[Ids, Ids, Floats]:
        """Source id (`EMPTY` for the empty word), target id and probability of each entry."""
        return (self.keys_P >> 32) + EMPTY, self.keys_P & 0xFFFFFFFF, self.probabilities_P

    def best(self, number: int) -> tuple[Ids, Ids, Ids, Floats]:
        """The most probable entries of each source id but `EMPTY`: source id, rank from 0, target
        id, probability."""
        source, target, probability = self.entries()
        order = np.lexsort((target, -probability, source))
        order = order[(source[order] != EMPTY) & (probability[order] > 0.0)]
        rank = np.arange(len(order)) - np.searchsorted(source[order], source[order])
        best = order[rank < number]
        return source[best], rank[rank < number], target[best], probability[best]


def estimate_table(
    source: Sentences, target: Sentences, num_pairs: int, *, num_iterations: int = NUM_ITERATIONS
) -> TranslationTable:
    """Estimate t(target | source), starting from equal probabilities. A corpus with more than
    `MAX_CELLS` cells is sampled at evenly spaced pairs."""
    num_cells = sum((len(source(i)) + 1) * len(target(i)) for i in range(num_pairs))
    # the cells, pairs of a source and a target position, of a target position stand side by side
    keys: list[Ids] = [np.empty(0, np.int64)]
    sizes: list[int] = []
    for index in range(0, num_pairs, max(1, -(-num_cells // MAX_CELLS))):
        with_empty = np.concatenate([[EMPTY], source(index)])
        keys.append(_keys(with_empty, target(index)).ravel())
        sizes += [len(with_empty)] * len(target(index))
    cell_sizes = np.array(sizes, np.int64)
    cell_starts = np.cumsum(cell_sizes) - cell_sizes
    keys_P, cells_C = np.unique(np.concatenate(keys), return_inverse=True)
    entry_starts = np.flatnonzero(np.diff(keys_P >> 32, prepend=-1))  # of each source token
    entry_sizes = np.diff(entry_starts, append=len(keys_P))
    probabilities_P = np.ones(len(keys_P))
    for _ in range(num_iterations if len(keys_P) else 0):
        shares_C = probabilities_P[cells_C]
        shares_C /= np.repeat(np.add.reduceat(shares_C, cell_starts), cell_sizes)
        counts_P = np.bincount(cells_C, weights=shares_C, minlength=len(keys_P))
        probabilities_P = counts_P / np.repeat(np.add.reduceat(counts_P, entry_starts), entry_sizes)
    return TranslationTable(keys_P, probabilities_P)


def best_sources(table: TranslationTable, source: Ids, target: Ids) -> Ids:
    """For each target token the position of the source token that it most likely comes from (the
    first of equals); `EMPTY` for the empty word, or where no source token has ever been seen with
    it."""
    scores = table.lookup(np.concatenate([[EMPTY], source]), target)
    return np.where(scores.max(axis=1) > 0.0, scores.argmax(axis=1) - 1, EMPTY)


def align(source: Sentences, target: Sentences, num_pairs: int) -> Iterator[list[Link]]:
    """The links of each pair that both directions agree on, by rising target position. On 8,000
    captions they have a precision of 0.98 and a recall of 0.77."""
    forward = estimate_table(source, target, num_pairs)
    backward = estimate_table(target, source, num_pairs)
    for index in range(num_pairs):
        sources = best_sources(forward, source(index), target(index))
        targets = best_sources(backward, target(index), source(index))
        links = []
        for t, s in enumerate(sources.tolist()):
            if s != EMPTY and targets[s] == t:
                links.append((s, t))
        yield links


def _keys(source: Ids, target: Ids) -> Ids:
    """[target tokens, source tokens]."""
    shifted = (source.astype(np.int64) - EMPTY) << 32
    return shifted[None, :] + target.astype(np.int64)[:, None]
