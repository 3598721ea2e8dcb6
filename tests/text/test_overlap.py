"""Pairs that occur twice, counted on digests."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seq2seq_attn.text.corpus import read_pairs
from seq2seq_attn.text.overlap import count_duplicates, count_overlap, digest_pairs

PAIRS = st.lists(st.tuples(st.sampled_from(["", " ", "a", "ab", "ä"]), st.sampled_from(["", "b", "c", "\u2028"])))


def write(path, pairs):
    sources, targets = ([pair[side].encode() for pair in pairs] for side in (0, 1))
    digest_pairs(sources, targets).tofile(path)
    return path


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("digests")


@settings(deadline=None)
@given(pairs=PAIRS, train=PAIRS)
def test_as_with_sets_of_strings(folder, pairs, train):
    split, train_path = write(folder / "split", pairs), write(folder / "train", train)
    assert count_duplicates(split) == len(pairs) - len(set(pairs))
    sources = {source for source, _ in train}
    known = [pair for pair in pairs if pair[0] in sources and pair[0].strip()]
    assert count_overlap(split, train_path) == (sum(pair in set(train) for pair in known), len(known))


def test_where_a_side_ends_matters(tmp_path):
    assert count_duplicates(write(tmp_path / "x", [("ab", "c"), ("a", "bc"), ("", "abc"), ("abc", "")])) == 0


def test_the_published_corpus(multi30k_dir, tmp_path):
    paths = {split: [multi30k_dir / f"{split}.{side}.gz" for side in ("de", "en")] for split in ("train", "val")}
    train, valid = (write(tmp_path / split, [*zip(*read_pairs(*both), strict=True)]) for split, both in paths.items())
    assert count_duplicates(train) == 3
    assert count_overlap(valid, train) == (0, 1)
