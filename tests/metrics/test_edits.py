"""Exact match, CER and WER: by hand, against the recursive definition, and compared like any other metric."""

from functools import cache

import pytest

from seq2seq_attn.evaluation.scores import score_set
from seq2seq_attn.metrics.by_length import make_buckets, token_lengths
from seq2seq_attn.metrics.edits import edit_distance
from seq2seq_attn.report.conclusion import conclude
from tests.metrics.corpora import make_hypotheses, make_references
from tests.metrics.test_bleu import score_of

REFERENCES = ["the cat sat", "a dog", "rain"]
HYPOTHESES = ["the cat", " a  dog ", "ruin s"]


@pytest.mark.parametrize(
    ("name", "score", "details"),
    [
        ("exact", 100 / 3, "matches = 1 of 3 sentences"),
        ("cer", 100 * (4 + 0 + 3) / (11 + 5 + 4), "edits = 7 of 20 characters"),
        ("wer", 100 * (1 + 0 + 2) / (3 + 2 + 1), "edits = 3 of 6 words"),
    ],
)
def test_scores_by_hand(name, score, details):
    found = score_of(name, HYPOTHESES, REFERENCES)
    assert found.score == pytest.approx(score)
    assert found.details == details
    assert found.signature.startswith("nrefs:1|case:mixed|unit:")
    assert "|version:seq2seq-attn-" in found.signature


def distance(one, other):
    """The definition, by recursion over the last items."""

    @cache
    def between(i, j):
        if not i or not j:
            return i + j
        return min(between(i - 1, j) + 1, between(i, j - 1) + 1, between(i - 1, j - 1) + (one[i - 1] != other[j - 1]))

    return between(len(one), len(other))


def test_the_distance_is_that_of_the_definition():
    references = make_references(40, max_length=9)
    hypotheses = make_hypotheses(references, seed=2, noise=0.9)
    for hypothesis, reference in zip(hypotheses, references[1:] + references[:1], strict=True):
        for one, other in ((hypothesis, reference), (hypothesis.split(), reference.split())):
            assert edit_distance(one, other) == distance(one, other)
    assert [edit_distance(*pair) for pair in (("", ""), ("abc", ""), ("", "ab"))] == [0, 3, 2]


def test_an_error_rate_counts_insertions_and_may_exceed_100():
    assert score_of("wer", ["a b c d"], ["x"]).score == 400
    assert score_of("cer", ["ab"], [""]).score == 100


def test_scores_by_length_and_the_best_system_of_an_error_rate():
    references = make_references(160)
    hypotheses = {
        name: make_hypotheses(references, seed=1, noise=noise)
        for name, noise in (("good", 0.05), ("b", 0.4), ("c", 0.9))
    }
    lengths = token_lengths(references, lambda lines: [line.split() for line in lines])
    scores = score_set("test", hypotheses, references, make_buckets(lengths, (12,)), measures=("cer", "exact"))
    assert [list(row.scores) for row in scores.buckets] == [["cer", "exact"]] * 2
    num_right = sum(one == other for one, other in zip(hypotheses["good"], references, strict=True))
    assert scores.scores["exact"][0].interval.value == pytest.approx(100 * num_right / len(references))
    assert "good is best with" in conclude(scores)
