"""Which pairs make up which batch. torchtext's `batch` cuts the batches here, on indices, and only here."""

from __future__ import annotations

import random
from array import array
from collections.abc import Callable, Iterator, Sequence
from typing import Literal

import numpy as np
import numpy.typing as npt

from seq2seq_attn.text.vocab import import_torchtext

Unit = Literal["sentences", "tokens"]
Lengths = npt.NDArray[np.int64]


def bucketed_batches(
    source_lengths: Lengths, target_lengths: Lengths, *, size: int, unit: Unit, seed: int, epoch: int
) -> list[list[int]]:
    """One epoch: every index once, in batches of pairs of similar length on both sides, batches in random order.

    The same arguments give the same list, whatever else drew random numbers: to resume inside an epoch, skip the
    batches that were done.

    Args:
        source_lengths: tokens of each source, without specials.
        target_lengths: tokens of each target, without specials.
        size: most pairs of a batch, or most target positions of it (EOS and padding included).
        unit: what `size` counts. A pair of more than `size` tokens is a batch of its own.
        seed: with `epoch`, decides the order.
        epoch: number of the epoch.

    Raises:
        ValueError: `size` is not positive, or the sides have different numbers of sentences.
    """
    if size < 1:
        raise ValueError(f"a batch of {size} {unit}: expected at least 1")
    if len(source_lengths) != len(target_lengths):
        raise ValueError(f"{len(source_lengths)} source and {len(target_lengths)} target lengths")
    # A generator of its own: torchtext's iterators read the global one, in whatever state that is.
    generator = random.Random(f"{seed}/{epoch}")
    # an array takes 4 bytes an index and is shuffled as a list, of 36, would be
    shuffled = array("i", range(len(target_lengths)))
    generator.shuffle(shuffled)
    order = _by_length(np.array(shuffled, dtype=np.int32), source_lengths + 1, target_lengths + 1)
    count = _count_pairs if unit == "sentences" else _padded_tokens(target_lengths + 1)
    # Before a first pair over the budget, torchtext emits an empty batch.
    batches = [indices for indices in import_torchtext().data.batch(order, size, count) if indices]
    generator.shuffle(batches)
    return batches


def ordered_batches(lengths: Sequence[int] | Lengths, *, size: int) -> list[list[int]]:
    """Every index once, longest first, at most `size` a batch: for inference. A batch says which lines it holds, so
    that results can go back to the order of the lines."""
    # longest first: what does not fit into memory fails at once; "stable": lines of equal length keep their order
    order = np.argsort(-np.asarray(lengths, dtype=np.int64), kind="stable").tolist()
    return [order[start : start + size] for start in range(0, len(order), size)]


def split_large(batches: Sequence[list[int]], lengths: Lengths, *, max_cells: int) -> list[list[int]]:
    """The same batches, those of more than `max_cells` cells (padding included) in halves, and these again: one
    over-long line must not pad all its neighbours. A line that is larger by itself is a batch of its own."""
    found = []
    waiting = list(reversed(batches))
    while waiting:
        batch = waiting.pop()
        if len(batch) > 1 and len(batch) * int(lengths[batch].max()) > max_cells:
            waiting += [batch[len(batch) // 2 :], batch[: len(batch) // 2]]
        else:
            found.append(batch)
    return found


def _by_length(order: npt.NDArray[np.int32], source: Lengths, target: Lengths) -> Iterator[int]:
    """Sort so that neighbours are alike on both sides; pairs of the same two lengths stay in the given order.

    First by the longer side, then by the difference, up and down in turn: where one length ends and the next begins,
    the pairs on both sides of the seam are alike too. Over a whole epoch of Multi30k, batches of 128 pairs of
    subwords have 2.6 % of their cells padded; torchtext's `pool` (100 batches, sorted target first) gives 12 %.
    """
    longer = np.maximum(source, target)[order]
    difference = (source - target)[order]
    keys = (np.where(longer % 2 == 1, difference, -difference), longer)
    return iter(array("i", order[np.lexsort(keys)].astype(np.intc).tobytes()))


def _count_pairs(_index: int, count: int, _so_far: int) -> int:
    return count


def _padded_tokens(lengths: Lengths) -> Callable[[int, int, int], int]:
    in_array = array("q", lengths.astype(np.int64).tobytes())  # reading one of numpy's takes several times as long

    def padded_tokens(index: int, count: int, so_far: int) -> int:
        # so_far is the padded size without this pair: (count - 1) * the longest of the others
        longest = so_far // (count - 1) if count > 1 else 0
        return count * max(longest, in_array[index])

    return padded_tokens
