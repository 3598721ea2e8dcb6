"""The conclusion of an evaluation, on made-up scores: what it says, and what it must not say."""

import re
from dataclasses import replace

import numpy as np
import pytest

from seq2seq_attn.evaluation.names import Arm, named_arms
from seq2seq_attn.evaluation.results import ArmScore, BucketScores, SetScores
from seq2seq_attn.metrics.by_length import Bucket
from seq2seq_attn.metrics.significance import BootstrapTest, Interval
from seq2seq_attn.report.conclusion import conclude

BOUNDS = {"whole": (0, None), "short": (0, 9), "middle": (9, 26), "long": (26, None)}


def arm_score(values, baseline=None, *, p=0.001, width=2.0):
    """Of an arm whose seeds have these scores, against the mean of the first arm."""
    mean = sum(values) / len(values)
    test = None
    if baseline is not None:
        difference = mean - baseline
        ends = (difference - 0.01, difference + 0.01) if difference else (-1.0, 1.0)
        test = BootstrapTest("bootstrap", difference, p, 1000, 1, *ends, p_corrected=p)
    return ArmScore(values, Interval(mean, mean - width, mean + width), test)


def scores_of(*whole, unclear=(), metric="bleu", sizes=(), **buckets):
    """Of runs a, b, ... on all sentences and in buckets.

    Args:
        unclear: the buckets in which chance explains differences.
        sizes: sentence pairs, where they are not 1,000.
    """
    rows = []
    for label, (first, *others) in {"whole": whole, **buckets}.items():
        p = 0.3 if label in unclear else 0.001
        scores = [arm_score([first])]
        for value in others:
            scores.append(arm_score([value], first, p=p))
        bucket = Bucket(*BOUNDS[label], np.arange(dict(sizes).get(label, 1000)))
        rows.append(BucketScores(bucket, {metric: scores}, {}))
    names = list("abc"[: len(whole)])
    return SetScores("test", names, named_arms(names), rows[0], rows[1:], {}, {})


NEAR = {"short": (35.0, 35.4), "long": (30.0, 20.0)}
CROSSED = {"short": (40.0, 30.0), "long": (1.0, 99.0)}


@pytest.mark.parametrize(
    ("scores", "text"),
    [
        # one run
        (
            scores_of(34.0, short=(40.0,), long=(28.0,)),
            "a scores 40.0 BLEU on sentences of up to 8 source tokens, 28.0 ",
        ),
        (
            scores_of(34.0, short=(35.0,), long=(33.0,)),
            "The length of a sentence makes no clear difference",
        ),
        (scores_of(34.0), "a scores 34.0 BLEU [32.0, 36.0] on all 1,000 sentence pairs."),
        # two runs, which differ by length
        (
            scores_of(95.0, 45.0, short=(97.0, 62.0), middle=(95.0, 40.0), long=(94.1, 13.2)),
            "On sentences of 26 and more source tokens a scores 94.1 BLEU, b 13.2; on those of up "
            "to 8 they differ by 35.0.",
        ),
        (
            scores_of(34.1, 34.5, unclear=["short"], **NEAR),
            "b 20.0; on those of up to 8 the difference (0.4) is not clear.",
        ),
        (
            scores_of(34.1, 34.5, **NEAR),
            "on those of up to 8 they differ by 0.4, the other way round.",
        ),
        (
            scores_of(34.1, 34.5, short=(35.0, 40.0), long=(0.01, 0.03)),
            "b 40.0; on those of 26 and more they differ by less than 0.1.",
        ),
        # two runs, of which all sentences together say more
        (
            scores_of(34.1, 34.5, unclear=["whole", "short", "long"], **NEAR),
            "No clear difference: on all 1,000 sentence pairs a scores 34.1 BLEU [32.1, 36.1], b ",
        ),
        (
            scores_of(9.0, 9.0, short=(9.0, 9.0), long=(9.0, 9.0)),
            "a and b score the same: 9.0 BLEU.",
        ),
        (
            scores_of(34.0, 30.0),
            "On all 1,000 sentence pairs a scores 34.0 BLEU [32.0, 36.0], b 30.0 [28.0, 32.0].",
        ),
        # thin buckets
        (
            scores_of(34.0, 30.0, sizes={"short": 5, "long": 5}, **CROSSED),
            "On all 1,000 sentence pairs a scores 34.0 BLEU [32.0, 36.0], b 30.0",
        ),
        (
            scores_of(34.0, 30.0, sizes={"long": 5}, **CROSSED),
            "On all 1,000 sentence pairs a scores 34.0 BLEU",
        ),
        (
            scores_of(
                34.0,
                30.0,
                sizes={"long": 5},
                short=(40.0, 30.0),
                middle=(35.0, 20.0),
                long=(1.0, 99.0),
            ),
            "On sentences of 9-25 source tokens",
        ),
        # three runs
        (
            scores_of(34.0, 33.0, 30.0, short=(40.0,) * 3, long=(30.0, 29.0, 10.0)),
            "a is best with 30.0 BLEU and c worst",
        ),
        (
            scores_of(34.0, 33.0, 30.0, metric="ter", unclear=["whole"]),
            "c is best with 30.0 TER and a worst with 34.0",
        ),
        (
            scores_of(34.01, 34.0, 34.0),
            "On all 1,000 sentence pairs all arms score 34.0 BLEU.",
        ),
    ],
)
def test_conclude(scores, text):
    assert text in conclude(scores)


@pytest.mark.parametrize(
    ("has_attention", "names"),
    [
        ([True, False], ["the attention model (a)", "the fixed vector (b)"]),
        ([True, True], ["a", "b"]),
    ],
)
def test_conclude_names_the_attention_model_and_the_fixed_vector(has_attention, names):
    text = conclude(scores_of(35.0, 30.0), has_attention)
    for name in names:
        assert f"{name} scores" in text or f", {name}" in text
    assert ("fixed vector" in text) == (has_attention == [True, False])


@pytest.mark.parametrize("values", [(0.3,), (0.2, 0.9), (0.0, 0.0), (0.1, 0.1, 0.7)])
def test_runs_that_have_learnt_nothing_are_said_to(values):
    text = conclude(scores_of(*values))
    assert text.startswith("Nothing has been learnt")
    for name, value in zip("abc", values, strict=False):
        assert f"{name} scores {value:.1f} BLEU" in text
    assert "learnt" not in conclude(scores_of(*values[1:], 1.2))
    assert "learnt" not in conclude(scores_of(*values, metric="ter"))


def test_bleu_that_says_nothing_concludes_nothing():
    scores = scores_of(0.0, 30.0)
    short = {"bleu": [replace(score, is_too_short=True) for score in scores.whole.scores["bleu"]]}
    assert "30" not in conclude(replace(scores, whole=replace(scores.whole, scores=short)))
    both = short | scores_of(41.0, 77.0, metric="chrf").whole.scores
    assert "77.0" in conclude(replace(scores, whole=replace(scores.whole, scores=both)))


@pytest.mark.parametrize("values", [(34.0, 20.0), (34.0, 20.0, 50.0)])
def test_few_pairs_have_no_verdict(values):
    assert conclude(scores_of(*values, sizes={"whole": 1})).startswith("1 sentence pair is too few")
    text = conclude(scores_of(*values, sizes={"whole": 49}))
    assert text.startswith("49 sentence pairs")
    assert "b scores 20.0 [18.0, 22.0]" in text
    assert not re.search("clear|differ|best", text)


@pytest.mark.parametrize(("p_corrected", "is_clear"), [(0.04, True), (0.06, False)])
def test_a_clear_difference_of_arms_needs_the_corrected_p(p_corrected, is_clear):
    second = arm_score([28.0, 29.0, 30.0], 35.5, width=1)
    test = replace(second.bootstrap, p_value=0.001, p_corrected=p_corrected)
    bleu = [arm_score([35.0, 36.0], width=1), replace(second, bootstrap=test)]
    whole = BucketScores(Bucket(0, None, np.arange(1000)), {"bleu": bleu}, {})
    arms = [Arm("x", (0, 1), ()), Arm("y", (2, 3, 4), ())]
    text = conclude(SetScores("test", list("abcde"), arms, whole, [], {}, {}))
    assert text.startswith("On all" if is_clear else "No clear difference: on all")
    assert "x scores 35.5 BLEU [34.5, 36.5], y " in text
