"""A corpus in chunks, the faults of its pairs, and pairs that occur twice, counted on digests."""

import subprocess
import sys
from itertools import chain

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seq2seq_attn.data import builder
from seq2seq_attn.data.builder import count_overlap, digest_pairs, find_faults, read_chunks
from seq2seq_attn.files import write_lines
from seq2seq_attn.text.normalize import normalize

TRAIN = ["a", "", "ccc", "\u2028", "e"]
VALID = ["v", "w"]


@pytest.fixture
def files(tmp_path):
    """A file of each split, which is both sides; one has no pairs."""
    files = []
    for split, lines in (("train", TRAIN), ("valid", VALID), ("none", [])):
        write_lines(tmp_path / split, lines)
        files.append((split, [tmp_path / split] * 2))
    return files


@pytest.mark.parametrize(
    ("max_pairs", "max_characters", "sizes"),
    [(2, 99, [2, 2, 1, 2]), (2, 3, [2, 1, 2, 2]), (99, 2, [3, 2, 2])],
)
def test_chunks_are_short(files, monkeypatch, max_pairs, max_characters, sizes):
    monkeypatch.setattr(builder, "MAX_PAIRS", max_pairs)
    monkeypatch.setattr(builder, "MAX_CHARACTERS", max_characters)
    chunks = list(read_chunks(files))
    assert [len(chunk.targets) for chunk in chunks] == sizes
    assert [*chain.from_iterable(chunk.sources for chunk in chunks)] == TRAIN + VALID


def test_workers_load_no_torch():
    modules = "seq2seq_attn.data.builder, seq2seq_attn.data.processes"
    script = f"import sys, {modules}; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0


def test_faults_by_length():
    source = np.array([0, 3, 11, 10, 1, 2])
    target = np.array([3, 0, 1, 10, 4, 6])
    faults = find_faults(source, target, max_length=10, max_length_ratio=3.0)
    blank, over_long, ratio_outlier = map(np.flatnonzero, faults)
    assert blank.tolist() == [0, 1]
    assert over_long.tolist() == [2]
    assert ratio_outlier.tolist() == [2, 4]


PAIRS = st.lists(
    st.tuples(st.sampled_from(["", " ", "a", "ab", "ä"]), st.sampled_from(["", "b", "c", "\u2028"]))
)


def digests(pairs):
    return digest_pairs(*([pair[side] for pair in pairs] for side in (0, 1)))


def num_different(pairs):
    return len(np.unique(digests(pairs)[:, 1]))


@settings(deadline=None)
@given(pairs=PAIRS, train=PAIRS)
def test_duplicates_and_overlap_are_those_of_sets_of_strings(pairs, train):
    pairs = [tuple(map(normalize, pair)) for pair in pairs]
    train = [tuple(map(normalize, pair)) for pair in train]
    assert num_different(pairs) == len(set(pairs))
    sources = {source for source, _ in train}
    known = [pair for pair in pairs if pair[0] in sources and pair[0].strip()]
    expected = (sum(pair in set(train) for pair in known), len(known))
    assert count_overlap(digests(pairs), digests(train)) == expected


def test_spaces_and_unicode_forms_hide_no_overlap():
    test = [("caf\u00e9 au lait", "b")]
    for train in ([("cafe\u0301 au lait", "b")], [("caf\u00e9  au lait ", "b ")]):
        assert count_overlap(digests(test), digests(train)) == (1, 1)


def test_where_a_side_ends_matters():
    assert num_different([("ab", "c"), ("a", "bc"), ("", "abc"), ("abc", "")]) == 4
