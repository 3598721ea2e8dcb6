"""Pairs that occur twice, counted on digests."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seq2seq_attn.text import overlap
from seq2seq_attn.text.corpus import read_pairs
from seq2seq_attn.text.overlap import count_duplicates, count_overlap, digest_pairs

PAIRS = st.lists(st.tuples(st.sampled_from(["", " ", "a", "ab", "ä"]), st.sampled_from(["", "b", "c", "\u2028"])))


def write(path, pairs):
    sources, targets = ([pair[side].encode() for pair in pairs] for side in (0, 1))
    digest_pairs(sources, targets).tofile(path)
    return path


def test_duplicates_and_overlap(tmp_path):
    found = write(tmp_path / "twice", [("a", "x"), ("a", "x"), ("a", "y"), ("b", "x"), ("a", "x")])
    assert count_duplicates(found) == 2
    train = write(tmp_path / "train", [("a", "x"), ("b", "y"), ("", ""), ("c", "z")])
    # the pair a-x, the source b with another target, a blank that counts for nothing
    valid = write(tmp_path / "valid", [("a", "x"), ("b", "other"), ("", ""), ("d", "z"), ("a", "x")])
    assert count_overlap(valid, train) == (2, 3)


def test_where_a_side_ends_matters(tmp_path):
    assert count_duplicates(write(tmp_path / "x", [("ab", "c"), ("a", "bc"), ("", "abc"), ("abc", "")])) == 0


def test_nothing_at_all(tmp_path):
    empty, one = write(tmp_path / "empty", []), write(tmp_path / "one", [("a", "b")])
    assert count_duplicates(empty) == 0
    assert count_overlap(empty, one) == count_overlap(one, empty) == (0, 0)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("digests")


@settings(deadline=None)
@given(pairs=PAIRS, train=PAIRS)
def test_as_with_sets_of_strings(folder, pairs, train):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(overlap, "_BLOCK_ROWS", 3)
        patch.setattr(overlap, "_ROWS_TO_SORT", 4)
        split, of_train = write(folder / "split", pairs), write(folder / "train", train)
        assert count_duplicates(split) == len(pairs) - len(set(pairs))
        sources = {source for source, _ in train}
        known = [pair for pair in pairs if pair[0] in sources and pair[0].strip()]
        assert count_overlap(split, of_train) == (sum(pair in set(train) for pair in known), len(known))


def test_equal_first_words_are_not_enough(tmp_path):
    rows = np.array([[1, 2, 3, 4], [1, 5, 3, 6], [1, 5, 3, 6]], dtype=np.uint64)
    rows.tofile(tmp_path / "split")
    rows[:1].tofile(tmp_path / "train")
    assert count_duplicates(tmp_path / "split") == 1
    assert count_overlap(tmp_path / "split", tmp_path / "train") == (1, 1)


def test_digests_are_of_all_their_bytes():
    digests = digest_pairs([b"%d" % i for i in range(2_000)], [b""] * 2_000)
    words = Counter(digests.ravel().tolist())
    assert max(words.values()) == 1
    ones = np.unpackbits(digests.view(np.uint8), axis=1).mean(axis=0)
    assert (np.abs(ones - 0.5) < 0.06).all()


def test_the_published_corpus(multi30k_dir, tmp_path):
    paths = {split: [multi30k_dir / f"{split}.{side}.gz" for side in ("de", "en")] for split in ("train", "val")}
    pairs = {split: list(zip(*read_pairs(*both), strict=True)) for split, both in paths.items()}
    train, valid = (write(tmp_path / split, of_split) for split, of_split in pairs.items())
    assert count_duplicates(train) == 3
    assert count_overlap(valid, train) == (0, 1)
