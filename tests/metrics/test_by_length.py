"""Buckets: what falls where, thin ones, and edges from text and by quantiles."""

import numpy as np
import pytest

from seq2seq_attn.errors import UsageError
from seq2seq_attn.metrics.by_length import MULTI30K_EDGES, make_buckets, parse_edges, quantile_edges


def test_buckets_are_half_open_and_named():
    lengths = np.array([0, 8, 9, 11, 12, 14, 15, 17, 18, 20, 21, 60])
    buckets = make_buckets(lengths, MULTI30K_EDGES)
    assert labels(buckets) == ["up to 8", "9-11", "12-14", "15-17", "18-20", "21 and more"]
    indices = np.stack([bucket.indices for bucket in buckets])
    assert indices.ravel().tolist() == list(range(12))
    assert labels(make_buckets(lengths, ())) == ["all"]
    assert labels(make_buckets(lengths, (20, 21))) == ["up to 19", "20", "21 and more"]


def labels(buckets):
    return [bucket.label for bucket in buckets]


def sizes(buckets):
    return [len(bucket) for bucket in buckets]


def test_empty_buckets_are_left_out_and_thin_ones_marked():
    buckets = make_buckets(np.array([5] * 50 + [30] * 49), (10, 20))
    assert labels(buckets) == ["up to 9", "20 and more"]
    assert sizes(buckets) == [50, 49]
    assert [bucket.is_thin for bucket in buckets] == [False, True]


def test_thin_buckets_merge_into_the_smaller_neighbor():
    lengths = np.array([5] * 80 + [10] * 20 + [15] * 70 + [20] * 60 + [25] * 3)
    merged = make_buckets(lengths, (6, 11, 16, 21), merge_below=50)
    assert labels(merged) == ["up to 5", "6-15", "16 and more"]
    assert sizes(merged) == [80, 90, 63]
    everything = np.concatenate([bucket.indices for bucket in merged])
    assert sorted(everything.tolist()) == list(range(233))
    assert sizes(make_buckets(lengths, (6, 11), merge_below=10_000)) == [233]


def test_the_first_and_the_last_bucket_merge_with_their_only_neighbor():
    for counts in ([60, 10, 100], [10, 60, 100], [100, 60, 10]):
        lengths = np.repeat([3, 8, 20], counts)
        merged = make_buckets(lengths, (6, 11), merge_below=50)
        assert sorted(sizes(merged)) == [70, 100]


def test_edges_from_text():
    assert parse_edges("9,12,15,18,21") == (9, 12, 15, 18, 21)
    assert parse_edges(" 10 ") == (10,)
    assert parse_edges("quantiles:100") == 100
    assert len(parse_edges(",".join(map(str, range(1, 100))))) == 99


@pytest.mark.parametrize(
    "text",
    [
        "",
        "9,9",
        "12,9",
        "0,4",
        "a",
        "9,",
        "-3",
        "quantiles:0",
        "quantiles:x",
        "quantiles:4,5",
        "deciles:4",
        "quantiles:999999999",
        f"quantiles:{'9' * 5000}",
        ",".join(map(str, range(1, 101))),
        "9" * 5000,
    ],
)
def test_text_that_names_no_edges_is_an_error_of_one_line(text):
    with pytest.raises(UsageError, match=r"--by-length .*100 buckets") as raised:
        parse_edges(text)
    assert len(str(raised.value)) < 300


def test_quantile_edges_make_even_buckets_and_survive_ties():
    assert quantile_edges(np.arange(1, 61), 6) == (11, 21, 31, 41, 51)
    lengths = np.random.default_rng(1).integers(4, 61, size=3000)
    even = sizes(make_buckets(lengths, quantile_edges(lengths, 6)))
    assert len(even) == 6
    assert max(even) - min(even) < 150
    assert quantile_edges(np.array([7] * 20), 6) == ()
    ties = np.array([7] * 20 + [8])
    assert sizes(make_buckets(ties, quantile_edges(ties, 3))) == [21]
