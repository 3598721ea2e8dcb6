"""Exact match, CER and WER: by hand, against the recursive definition, and compared like any other
metric."""

from functools import cache

import pytest

from seq2seq_attn.metrics.bleu import Measure
from seq2seq_attn.metrics.edits import edit_distance
from tests.metrics.corpora import make_hypotheses, make_references

PAIRS = ["the cat", " a  dog ", "ruin s"], ["the cat sat", "a dog", "rain"]


@pytest.mark.parametrize(
    ("name", "hypotheses", "references", "score", "details"),
    [
        ("exact", *PAIRS, 100 / 3, "1 of 3 sentences"),
        ("cer", *PAIRS, 100 * 7 / 20, "7 of 20 characters"),
        ("wer", *PAIRS, 100 * 3 / 6, "3 of 6 words"),
        ("wer", ["a b c d"], ["x"], 400, "4 of 1 words"),  # insertions count
        ("cer", ["ab"], [""], 100, "2 of 0 characters"),
    ],
)
def test_scores_by_hand(name, hypotheses, references, score, details):
    statistics = Measure(name, references).statistics(hypotheses)
    assert statistics.score().score == pytest.approx(score)
    assert statistics.details.endswith(f" = {details}")
    assert statistics.signature.startswith("nrefs:1|case:mixed|unit:")
    assert "|version:seq2seq-attn-" in statistics.signature


def distance(one, other):
    """The definition, by recursion over the last items."""

    @cache
    def between(i, j):
        if not i or not j:
            return i + j
        return min(
            between(i - 1, j) + 1,
            between(i, j - 1) + 1,
            between(i - 1, j - 1) + (one[i - 1] != other[j - 1]),
        )

    return between(len(one), len(other))


def test_the_distance_is_that_of_the_definition():
    references = make_references(40, max_length=9)
    hypotheses = make_hypotheses(references, seed=2, noise=0.9)
    for hypothesis, reference in zip(hypotheses, references[1:] + references[:1], strict=True):
        for one, other in ((hypothesis, reference), (hypothesis.split(), reference.split())):
            assert edit_distance(one, other) == distance(one, other)
    assert [edit_distance(*pair) for pair in (("", ""), ("abc", ""), ("", "ab"))] == [0, 3, 2]
