"""What is wrong with a test set: copies, blank lines, lines that outweigh all others."""

import json

import pytest

from seq2seq_attn.evaluation.audit import audit_set
from seq2seq_attn.evaluation.scoring import Settings, score_sets
from seq2seq_attn.evaluation.test_sets import EvaluationSet
from seq2seq_attn.evaluation.translations import SetTranslations
from seq2seq_attn.metrics.significance import Resampling
from tests.metrics.corpora import make_hypotheses, make_references
from tests.report.conftest import report_of

LINES = make_references(60)
WORSE = make_hypotheses(LINES, seed=1, noise=0.3)
BETTER = make_hypotheses(LINES, seed=2, noise=0.25)
QUICK = Settings("12", "reference", ("bleu", "exact"), Resampling(100))


def set_of(references, source=None):
    return EvaluationSet("news", source or references, references)


def score(references, *systems):
    outputs = {str(number): [SetTranslations(lines)] for number, lines in enumerate(systems)}
    return score_sets([set_of(references)], outputs, settings=QUICK).sets[0]


@pytest.mark.parametrize(
    ("references", "source", "facts"),
    [
        (LINES, None, []),
        (LINES + LINES[:5], None, ["5 of the 65"]),
        (LINES + LINES[:2], None, []),
        (20 * LINES, None, ["1,140 of the 1,200"]),
        ([*LINES[:-2], "", "  "], LINES, ["2 of the 60 references"]),
        (LINES, [*LINES[:-1], ""], ["1 of the 60 source"]),
        ([*LINES[:-1], "one man " * 900], None, ["line 60"]),
        (["a", "b " * 900], None, []),  # of two lines, one is always the longest
    ],
)
def test_audit_set(references, source, facts):
    warnings = audit_set(set_of(references, source))
    assert len(warnings) == len(facts)
    for warning, fact in zip(warnings, facts, strict=True):
        assert fact in warning


def test_a_pair_with_another_reference_is_not_a_copy():
    assert audit_set(EvaluationSet("news", ["x"] * 60, LINES)) == []


def test_copies_narrow_neither_intervals_nor_tests():
    once = score(LINES, WORSE, BETTER).whole.scores["bleu"]
    often = score(20 * LINES, 20 * WORSE, 20 * BETTER).whole.scores["bleu"]
    for single, repeated in zip(once, often, strict=True):
        assert repeated.interval.value == pytest.approx(single.interval.value)
        assert repeated.interval.low == pytest.approx(single.interval.low, abs=1e-3)
        assert repeated.interval.high == pytest.approx(single.interval.high, abs=1e-3)
    assert often[1].bootstrap.p_value == pytest.approx(once[1].bootstrap.p_value)


def test_few_distinct_pairs_have_no_verdict_however_often_they_are_repeated():
    scores = score(20 * LINES[:40], 20 * WORSE[:40], 20 * LINES[:40])
    assert scores.whole.scores["bleu"][1].bootstrap.p_value is None
    assert scores.whole.bucket.is_thin
    assert report_of(scores).conclusion.startswith("40 distinct sentence pairs are too few")


def test_short_references_stay_short_when_they_are_repeated():
    scores = score(20 * ["a b"], 20 * ["a b"])
    assert scores.whole.scores["bleu"][0].is_too_short


def test_warnings_stand_in_every_form_of_the_report():
    report = report_of(score(20 * LINES, 20 * WORSE, 20 * BETTER))
    [warning] = json.loads(json.dumps(report.data))["sets"][0]["warnings"]
    for text in (report.summary, report.text, report.markdown(), warning):
        assert "1,140 of the 1,200" in text
