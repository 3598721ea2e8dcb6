"""Batches of indices, and the faults of torchtext's iterators that must not come through."""

import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seq2seq_attn.data.buckets import bucketed_batches, ordered_batches, split_large


def lengths_like_captions(num_pairs=3_000):
    generator = np.random.default_rng(5)
    source = generator.poisson(11, num_pairs) + 1
    return source, np.maximum(1, source + generator.integers(-3, 4, num_pairs))


def padded_share(batches, lengths):
    """Share of padding among all cells of a side's id matrices, EOS counted as a token."""
    cells = sum(len(batch) * (lengths[batch].max() + 1) for batch in batches)
    return 1 - (lengths + 1).sum() / cells


@settings(deadline=None)  # the first call loads torchtext
@given(
    pairs=st.lists(st.tuples(st.integers(0, 60), st.integers(0, 60)), max_size=120),
    size=st.integers(1, 200),
    unit=st.sampled_from(["sentences", "tokens"]),
    epoch=st.integers(0, 3),
)
def test_every_index_once_and_within_the_budget(pairs, size, unit, epoch):
    source, target = (np.array([pair[i] for pair in pairs], dtype=np.int64) for i in (0, 1))
    batches = bucketed_batches(source, target, size=size, unit=unit, seed=1, epoch=epoch)
    assert sorted(i for batch in batches for i in batch) == list(range(len(pairs)))
    for batch in batches:
        used = len(batch) if unit == "sentences" else len(batch) * (target[batch].max() + 1)
        assert used <= size or len(batch) == 1


@pytest.mark.parametrize("unit", ["sentences", "tokens"])
def test_the_same_arguments_give_the_same_epoch(unit):
    # torchtext's shuffler reads the global generator when it is made
    source, target = lengths_like_captions()
    size = 64 if unit == "sentences" else 900
    random.seed(1)
    first = bucketed_batches(source, target, size=size, unit=unit, seed=7, epoch=2)
    random.seed(2)
    np.random.seed(2)
    assert bucketed_batches(source, target, size=size, unit=unit, seed=7, epoch=2) == first
    state = random.getstate()
    other_epoch = bucketed_batches(source, target, size=size, unit=unit, seed=7, epoch=3)
    assert random.getstate() == state
    shared = set(map(frozenset, first)) & set(map(frozenset, other_epoch))
    assert len(shared) < len(first) / 4  # other batches, not only in another order
    means = [target[batch].mean() for batch in first]
    assert abs(np.corrcoef(means, np.arange(len(means)))[0, 1]) < 0.4  # in no order of length


def test_neighbors_differ_by_at_most_one_token_on_each_side():
    """In a corpus with a pair of every two lengths, all in one batch, also where the longer side
    gets longer."""
    source, target = (side.ravel() for side in np.mgrid[0:12, 0:12])
    [order] = bucketed_batches(source, target, size=len(source), unit="sentences", seed=1, epoch=0)
    for side in (source, target):
        assert np.abs(np.diff(side[order])).max() == 1


@pytest.mark.parametrize(("size", "unit"), [(64, "sentences"), (3000, "tokens")])
def test_little_padding(size, unit):
    # torchtext's iterator by default, on Multi30k: 46.7 %
    source, target = lengths_like_captions(29_000)
    batches = bucketed_batches(source, target, size=size, unit=unit, seed=1, epoch=0)
    assert padded_share(batches, source) < 0.05
    assert padded_share(batches, target) < 0.05


def test_batches_for_inference_say_which_lines_they_hold():
    # torchtext sorts validation and test sets and does not say so
    assert ordered_batches([3, 9, 3, 0, 9], size=2) == [[1, 4], [0, 2], [3]]
    assert ordered_batches([], size=2) == []


def test_an_over_long_line_does_not_pad_its_neighbours():
    lengths = np.array([6000, *[30] * 63])
    whole = ordered_batches(lengths, size=64)
    batches = split_large(whole, lengths, max_cells=64 * 100)
    assert [index for batch in batches for index in batch] == whole[0]
    assert batches[0] == [0]
    assert max(len(batch) * lengths[batch].max() for batch in batches[1:]) <= 64 * 100
    assert split_large(whole, lengths[::-1] % 101, max_cells=64 * 100) == whole
