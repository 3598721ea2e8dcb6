"""Buckets: what falls where, thin ones, and edges from text and by quantiles."""

import numpy as np
import pytest

from seq2seq_attn.errors import UsageError
from seq2seq_attn.metrics.by_length import MULTI30K_EDGES, make_buckets, parse_edges, quantile_edges


@pytest.mark.parametrize(
    ("edges", "labels"),
    [
        (MULTI30K_EDGES, ["up to 8", "9-11", "12-14", "15-17", "18-20", "21 and more"]),
        ((), ["all"]),
        ((9, 70), ["up to 8", "9-69"]),  # empty ones are left out
    ],
)
def test_buckets_are_half_open_and_named(edges, labels):
    lengths = np.array([0, 8, 9, 11, 12, 14, 15, 17, 18, 20, 21, 60])
    buckets = make_buckets(lengths, edges)
    assert [bucket.label for bucket in buckets] == labels
    indices = np.concatenate([bucket.indices for bucket in buckets])
    assert indices.tolist() == list(range(12))


def test_thin_buckets_are_marked():
    buckets = make_buckets(np.repeat([5, 30], [50, 49]), [10])
    assert [bucket.is_thin for bucket in buckets] == [False, True]


@pytest.mark.parametrize(
    ("text", "edges"),
    [
        ("9,12,15,18,21", MULTI30K_EDGES),
        (" 10 ", (10,)),
        ("quantiles:100", 100),
    ],
)
def test_edges_from_text(text, edges):
    assert parse_edges(text) == edges


@pytest.mark.parametrize(
    "text",
    [
        "",
        "9,9",
        "12,9",
        "0,4",
        "a",
        "quantiles:0",
        "quantiles:4,5",
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


@pytest.mark.parametrize(
    ("lengths", "num_buckets", "edges"),
    [
        (np.arange(1, 61), 6, (11, 21, 31, 41, 51)),
        (np.array([7] * 20), 6, ()),  # ties
    ],
)
def test_quantile_edges(lengths, num_buckets, edges):
    assert quantile_edges(lengths, num_buckets) == edges
