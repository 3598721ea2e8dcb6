"""Joined pairs: disjoint, seeded, in the proportions that were asked for; links moved along."""

from __future__ import annotations

from collections import Counter

import pytest

from seq2seq_attn.errors import UsageError
from seq2seq_attn.text.concatenation import concatenate_lines, concatenate_links, equal_groups, mixed_groups


def test_groups_are_disjoint_and_seeded() -> None:
    groups = equal_groups(20, 3, seed=1)
    flat = [index for group in groups for index in group]
    assert [len(group) for group in groups] == [3] * 6
    assert len(set(flat)) == 18
    assert set(flat) <= set(range(20))
    assert equal_groups(20, 3, seed=1) == groups
    assert equal_groups(20, 3, seed=2) != groups


def test_groups_of_one_are_the_pairs_in_order() -> None:
    assert equal_groups(4, 1, seed=7) == [(0,), (1,), (2,), (3,)]


def test_groups_of_none_are_refused() -> None:
    with pytest.raises(ValueError, match="0 pairs concatenated: expected at least 1"):
        equal_groups(4, 0, seed=1)


def test_mixed_groups_hold_every_pair_once() -> None:
    groups = mixed_groups(1_000, {1: 0.5, 2: 0.25, 6: 0.25}, seed="a")
    assert sorted(index for group in groups for index in group) == list(range(1_000))
    sizes = Counter(map(len, groups))
    # 1,000 pairs, 2.5 a group on average: 400 groups, 200 of them single, 100 of two, 100 of six
    assert sizes == {1: 200, 2: 100, 6: 100}


def test_mixed_groups_differ_by_seed_but_not_in_number() -> None:
    one, two = (mixed_groups(997, {1: 1, 3: 2}, seed=seed) for seed in ("1/0", "1/1"))
    assert one != two
    assert Counter(map(len, one)) == Counter(map(len, two))


def test_mixed_groups_do_not_depend_on_the_order_of_the_sizes() -> None:
    assert mixed_groups(50, {1: 1, 3: 2}, seed="a") == mixed_groups(50, {3: 2, 1: 1}, seed="a")


def test_what_fills_no_group_stays_single() -> None:
    assert Counter(map(len, mixed_groups(10, {4: 1.0}, seed=""))) == {4: 2, 1: 2}


@pytest.mark.parametrize(("shares", "size"), [({1000: 1.0}, 1000), ({1: 1, 401: 1}, 401), ({1: 1, 2: 1e-4}, 2)])
def test_a_corpus_too_small_for_a_group_of_a_size_is_refused(shares: dict[int, float], size: int) -> None:
    expected = rf"^data\.concatenate\.{size}=.*: 400 training pairs make no group of {size} with .*; leave it out"
    with pytest.raises(UsageError, match=expected):
        mixed_groups(400, shares, seed="")
    assert len(mixed_groups(1_000, {1000: 1.0, 2: 0.0}, seed="")) == 1


@pytest.mark.parametrize("probabilities", [{}, {0: 1.0}, {2: -1.0, 1: 3.0}, {2: 0.0}])
def test_probabilities_that_are_none(probabilities: dict[int, float]) -> None:
    with pytest.raises(ValueError, match="expected sizes of at least 1, and weights of at least 0 that are not all 0"):
        mixed_groups(10, probabilities, seed="")


def test_lines_and_links_of_a_group() -> None:
    groups = [(2, 0)]
    assert concatenate_lines(["a b", "c", "d e f"], groups) == ["d e f a b"]
    links = concatenate_links(["0-1 1-0", "", "2-2"], groups, source_lengths=[2, 1, 3], target_lengths=[2, 1, 4])
    assert links == ["2-2 3-5 4-4"]
