"""GLEU by hand."""

import pytest

from seq2seq_attn.metrics.gleu import gleu


@pytest.mark.parametrize(
    ("hypothesis", "reference", "expected"),
    [
        ("a b c d e", "a b c d e", 1.0),
        ("", "", 1.0),
        ("a", "", 0.0),
        ("a b", "c d", 0.0),
        ("a b c", "a b", 3 / 6),  # precision: a, b and "a b" of six n-grams
        ("a b", "a b c", 3 / 6),  # recall
        ("a a a", "a b", 1 / 6),  # "a" counts once
        ("b a", "a b", 2 / 3),
        ("a b c d e f", "a b c d e g", 14 / 18),  # of 6 + 5 + 4 + 3 n-grams all but the four with the last word
    ],
)
def test_by_hand(hypothesis, reference, expected):
    assert gleu(hypothesis.split(), reference.split()) == pytest.approx(expected)
