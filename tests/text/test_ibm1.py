"""IBM model 1 against loops over its formula, and its links."""

import random
from collections import defaultdict

import numpy as np
import pytest

from seq2seq_attn.text import ibm1
from seq2seq_attn.text.ibm1 import EMPTY, align, best_sources, estimate_table

SOURCES = [[5, 6], [5, 7], [8], [6, 7, 6], []]
TARGETS = [[15, 16], [15, 17, 17], [18], [16, 17], [15]]


def arrays(lists):
    return [np.array(ids, dtype=np.int32) for ids in lists].__getitem__


def loops(sources, targets, num_iterations):
    """t(target | source) by plain expectation maximization."""
    table = defaultdict(lambda: 1.0)
    for _ in range(num_iterations):
        counts = defaultdict(float)
        totals = defaultdict(float)
        for source, target in zip(sources, targets, strict=True):
            for t in target:
                norm = sum(table[s, t] for s in [EMPTY, *source])
                for s in [EMPTY, *source]:
                    counts[s, t] += table[s, t] / norm
                    totals[s] += table[s, t] / norm
        table = {key: count / totals[key[0]] for key, count in counts.items()}
    return table


def random_sentences(seed):
    rng = random.Random(seed)
    return [rng.choices(range(9), k=rng.randrange(7)) for _ in range(40)]


@pytest.mark.parametrize("num_iterations", [1, 2, 5])
def test_the_table_is_that_of_plain_loops(num_iterations):
    sources = random_sentences(3)
    targets = random_sentences(4)
    table = estimate_table(arrays(sources), arrays(targets), 40, num_iterations=num_iterations)
    source_ids, target_ids, probabilities = map(np.ndarray.tolist, table.entries())
    keys = zip(source_ids, target_ids, strict=True)
    by_key = dict(zip(keys, probabilities, strict=True))
    assert by_key == pytest.approx(loops(sources, targets, num_iterations), rel=1e-9)


def test_links_are_those_of_both_directions():
    links = list(align(arrays(SOURCES), arrays(TARGETS), 5))
    assert [links[0], links[2], links[3]] == [[(1, 1)], [(0, 0)], [(0, 0), (1, 1)]]
    assert links[4] == []


def test_a_target_token_that_was_never_seen_comes_from_the_empty_word():
    table = estimate_table(arrays(SOURCES), arrays(TARGETS), 5)
    assert best_sources(table, np.array([8]), np.array([999])).tolist() == [EMPTY]


def test_a_large_corpus_is_estimated_from_a_part_of_it(monkeypatch):
    monkeypatch.setattr(ibm1, "MAX_CELLS", 14)  # of 26: every second pair
    part = estimate_table(arrays(SOURCES), arrays(TARGETS), 5)
    expected = estimate_table(arrays(SOURCES[::2]), arrays(TARGETS[::2]), 3)
    np.testing.assert_array_equal(part.keys_P, expected.keys_P)
    np.testing.assert_array_equal(part.probabilities_P, expected.probabilities_P)
