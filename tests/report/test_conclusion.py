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

BOUNDS = {"short": (0, 9), "middle": (9, 26), "long": (26, None)}


def arm_score(values, baseline=None, *, p=0.001, width=2.0):
    """Of an arm whose seeds have these scores, against the mean of the first arm."""
    mean = sum(values) / len(values)
    test = None
    if baseline is not None:
        difference = mean - baseline
        ends = (difference - 0.01, difference + 0.01) if difference else (-1.0, 1.0)
        test = BootstrapTest("bootstrap", difference, p, 1000, 1, *ends)
    return ArmScore(values, Interval(mean, mean - width, mean + width), test)


def scores_of(whole, *, p=0.001, metric="bleu", thin=(), **buckets):
    """Of runs a, b, ... on all sentences and in buckets; `p`: of all differences, or by row."""

    def row_scores(row, values):
        p_value = p[row] if isinstance(p, dict) else p
        first, *others = values
        return {
            metric: [
                arm_score([first]),
                *(arm_score([value], first, p=p_value) for value in others),
            ]
        }

    names = list("abc"[: len(whole)])
    rows = [
        BucketScores(
            Bucket(*BOUNDS[row], np.arange(5 if row in thin else 100)), row_scores(row, values), {}
        )
        for row, values in buckets.items()
    ]
    whole_set = BucketScores(Bucket(0, None, np.arange(1000)), row_scores("whole", whole), {})
    return SetScores("test", names, named_arms(names), whole_set, rows, {}, {})


@pytest.mark.parametrize(
    ("other", "names"),
    [("fixed", ("the attention model (a)", "the fixed vector (b)")), ("dot", ("a", "b"))],
)
def test_two_kinds_of_attention_are_named(other, names):
    scores = scores_of((95.0, 45.0), short=(97.0, 62.0), middle=(95.0, 40.0), long=(94.1, 13.2))
    assert conclude(replace(scores, unit="words"), attentions=("additive", other)) == (
        f"On sentences of 26 and more words {names[0]} scores 94.1 BLEU, {names[1]} 13.2; on those "
        "of up to 8 they differ by 35.0."
    )


@pytest.mark.parametrize(
    ("short", "long", "p", "end"),
    [
        (
            (35.0, 35.4),
            (30.0, 20.0),
            (0.3, 0.001),
            "b 20.0; on those of up to 8 the difference (0.4) is not clear.",
        ),
        (
            (35.0, 35.4),
            (30.0, 20.0),
            (0.001, 0.3),
            "those of 26 and more the difference (10.0) is not clear.",
        ),
        (
            (35.0, 35.4),
            (30.0, 20.0),
            (0.001, 0.001),
            "on those of up to 8 they differ by 0.4, the other way round.",
        ),
        (
            (35.0, 40.0),
            (0.01, 0.03),
            (0.001, 0.001),
            "b 40.0; on those of 26 and more they differ by less than 0.1.",
        ),
        (
            (35.0, 35.4),
            (30.0, 29.7),
            (0.3, 0.3),
            "a scores 34.1 BLEU [32.1, 36.1], b 34.5 [32.5, 36.5].",
        ),
        ((9.0, 9.0), (9.0, 9.0), (1.0, 1.0), "a and b score the same: 9.0 BLEU."),
    ],
)
def test_a_difference_that_chance_explains_is_not_called_one(short, long, p, end):
    whole = (9.0, 9.0) if short == long else (34.1, 34.5)
    scores = scores_of(whole, short=short, long=long, p={"short": p[0], "long": p[1], "whole": 0.3})
    assert conclude(scores).endswith(end)


@pytest.mark.parametrize("values", [(0.3,), (0.2, 0.9), (0.0, 0.0), (0.1, 0.1, 0.7)])
def test_runs_that_have_learnt_nothing_are_said_to(values):
    rows = {"short": tuple(5 * value for value in values), "long": (0.0,) * len(values)}
    text = conclude(scores_of(values, **rows))
    assert text.startswith("Nothing has been learnt")
    assert all(
        f"{name} scores {value:.1f} BLEU" in text
        for name, value in zip("abc", values, strict=False)
    )
    assert "learnt" not in conclude(scores_of((*values[1:], 1.2), **rows))
    assert "learnt" not in conclude(scores_of(values, metric="ter", **rows))


def test_bleu_that_says_nothing_concludes_nothing():
    scores = scores_of((0.0, 30.0))
    short = {"bleu": [replace(score, is_too_short=True) for score in scores.whole.scores["bleu"]]}
    assert "30" not in conclude(replace(scores, whole=replace(scores.whole, scores=short)))
    also = {**short, **scores_of((41.0, 77.0), metric="chrf").whole.scores}
    assert "77.0" in conclude(replace(scores, whole=replace(scores.whole, scores=also)))


THIN = {"short": (40.0, 30.0), "long": (1.0, 99.0), "thin": ("short", "long")}


@pytest.mark.parametrize(
    ("whole", "rows", "text"),
    [
        (
            (34.0,),
            {"short": (40.0,), "long": (28.0,)},
            "a scores 40.0 BLEU on sentences of up to 8 source tokens, 28.0 ",
        ),
        (
            (34.0,),
            {"short": (35.0,), "long": (33.0,)},
            "The length of a sentence makes no clear difference",
        ),
        ((34.0,), {}, "a scores 34.0 BLEU [32.0, 36.0] on all 1,000 sentence pairs."),
        (
            (34.0, 30.0),
            {},
            "On all 1,000 sentence pairs a scores 34.0 BLEU [32.0, 36.0], b 30.0 [28.0, 32.0].",
        ),
        ((34.0, 30.0), THIN, "On all 1,000 sentence pairs a scores 34.0 BLEU [32.0, 36.0], b 30.0"),
        (
            (34.0, 30.0),
            {**THIN, "thin": ("long",)},
            "On all 1,000 sentence pairs a scores 34.0 BLEU",
        ),
        (
            (34.0, 30.0),
            {**THIN, "middle": (35.0, 20.0), "thin": ("long",)},
            "On sentences of 9-25 source tokens",
        ),
        (
            (34.0, 33.0, 30.0),
            {"short": (40.0,) * 3, "long": (30.0, 29.0, 10.0)},
            "a is best with 30.0 BLEU and c worst",
        ),
        (
            (34.0, 33.0, 30.0),
            {"metric": "ter", "p": 0.5},
            "c is best with 30.0 TER and a worst with 34.0",
        ),
    ],
)
def test_one_run_thin_buckets_many_runs_and_error_rates(whole, rows, text):
    assert text in conclude(scores_of(whole, **rows))


@pytest.mark.parametrize("values", [(34.0, 20.0), (34.0, 20.0, 50.0)])
def test_few_pairs_have_no_verdict(values):
    scores = scores_of(values, p=None)
    few = replace(scores.whole, bucket=Bucket(0, None, np.arange(49)))
    text = conclude(replace(scores, whole=few))
    assert text.startswith("49 sentence pairs")
    assert "b scores 20.0 [18.0, 22.0]" in text
    assert not re.search("clear|differ|best", text)


def test_a_difference_whose_interval_holds_0_is_not_clear():
    scores = scores_of((34.0, 30.0))
    [first, second] = scores.whole.scores["bleu"]
    wide = replace(second, bootstrap=replace(second.bootstrap, low=-9.0, high=1.0))
    whole = replace(scores.whole, scores={"bleu": [first, wide]})
    assert conclude(scores).startswith("On all")
    assert conclude(replace(scores, whole=whole)).startswith("No clear difference")


@pytest.mark.parametrize(
    ("first", "second", "is_clear"),
    [
        ((35.0, 36.0), (28.0, 29.0, 30.0), True),
        ((35.0, 36.0), (28.0, 29.0, 36.0), False),
        ((35.0, 36.0), (30.0,), True),
        ((29.0, 42.0), (30.0,), False),  # inside the range of the others
        ((35.5,), (28.0, 29.0, 36.0), False),
    ],
)
def test_arms_differ_only_if_their_seeds_do(first, second, is_clear):
    runs = [*range(len(first) + len(second))]
    members = [tuple(runs[: len(first)]), tuple(runs[len(first) :])]
    arms = [
        Arm(name, indices, indices)
        for name, indices in zip(("additive", "fixed"), members, strict=True)
    ]
    bleu = [arm_score(first, width=1), arm_score(second, 35.5, width=1)]
    whole = BucketScores(Bucket(0, None, np.arange(1000)), {"bleu": bleu}, {})
    scores = SetScores("test", [*map(str, runs)], arms, whole, [], {}, {})
    text = conclude(scores, attentions=["additive"] * len(first) + ["fixed"] * len(second))
    assert text.startswith("On all" if is_clear else "No clear difference: on all")
    assert "the attention model (additive) scores 35.5 BLEU [34.5, 36.5], the fixed vector" in text
