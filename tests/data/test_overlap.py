"""Pairs that occur twice, counted on digests."""

from hypothesis import given, settings
from hypothesis import strategies as st

from seq2seq_attn.data.builder import count_duplicates, count_overlap, digest_pairs

PAIRS = st.lists(st.tuples(st.sampled_from(["", " ", "a", "ab", "ä"]), st.sampled_from(["", "b", "c", "\u2028"])))


def digests(pairs):
    return digest_pairs(*([pair[side] for pair in pairs] for side in (0, 1)))


@settings(deadline=None)
@given(pairs=PAIRS, train=PAIRS)
def test_as_with_sets_of_strings(pairs, train):
    assert count_duplicates(digests(pairs)) == len(pairs) - len(set(pairs))
    sources = {source for source, _ in train}
    known = [pair for pair in pairs if pair[0] in sources and pair[0].strip()]
    expected = (sum(pair in set(train) for pair in known), len(known))
    assert count_overlap(digests(pairs), digests(train)) == expected


def test_where_a_side_ends_matters():
    assert count_duplicates(digests([("ab", "c"), ("a", "bc"), ("", "abc"), ("abc", "")])) == 0
