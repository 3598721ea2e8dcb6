"""A corpus in chunks, the faults of its pairs, and pairs that occur twice, counted on digests."""

import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seq2seq_attn.data import builder
from seq2seq_attn.data.builder import Chunk, count_overlap, digest_pairs, find_faults, read_chunks


@pytest.fixture
def files(tmp_path):
    """Two splits and one without pairs."""
    found = {}
    for split, lines in (
        ("train", ["a", "", "ccc", "\u2028", "e"]),
        ("valid", ["v", "w"]),
        ("none", []),
    ):
        found[split] = (tmp_path / f"{split}.de", tmp_path / f"{split}.en")
        for path in found[split]:
            path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8", newline="")
    return found


def test_chunks_are_short_and_of_one_split(files, monkeypatch):
    train, valid = ["a", "", "ccc", "\u2028", "e"], ["v", "w"]
    assert list(read_chunks(files.items())) == [
        Chunk("train", train, train),
        Chunk("valid", valid, valid),
    ]
    for max_pairs, max_characters, sizes in (
        (2, 99, [2, 2, 1, 2]),
        (2, 3, [2, 1, 2, 2]),
        (99, 2, [3, 2, 2]),
    ):
        monkeypatch.setattr(builder, "MAX_PAIRS", max_pairs)
        monkeypatch.setattr(builder, "MAX_CHARACTERS", max_characters)
        chunks = list(read_chunks(files.items()))
        assert [len(chunk.targets) for chunk in chunks] == sizes
        assert [line for chunk in chunks for line in chunk.sources] == [*train, *valid]


def test_workers_load_no_torch():
    modules = "seq2seq_attn.data.builder, seq2seq_attn.data.processes"
    script = f"import sys, {modules}; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0


def test_faults_by_length():
    source = np.array([0, 3, 11, 10, 1, 2, 30, 0])
    target = np.array([3, 0, 1, 10, 4, 6, 1, 0])
    is_blank, is_over_long, is_ratio_outlier = find_faults(source, target, 10, 3.0).tolist()
    assert is_blank == [True, True, False, False, False, False, False, True]
    assert is_over_long == [False, False, True, False, False, False, True, False]
    assert is_ratio_outlier == [False, False, True, False, True, False, True, False]


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
    assert num_different(pairs) == len(set(pairs))
    sources = {source for source, _ in train}
    known = [pair for pair in pairs if pair[0] in sources and pair[0].strip()]
    expected = (sum(pair in set(train) for pair in known), len(known))
    assert count_overlap(digests(pairs), digests(train)) == expected


def test_where_a_side_ends_matters():
    assert num_different([("ab", "c"), ("a", "bc"), ("", "abc"), ("abc", "")]) == 4
