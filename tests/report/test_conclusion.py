"""The conclusion of an evaluation, on made-up scores: what it says, and what it must not say."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from seq2seq_attn.evaluation.names import Arm, named_arms
from seq2seq_attn.evaluation.scores import ArmScore, BucketScores, SetScores
from seq2seq_attn.metrics.by_length import Bucket
from seq2seq_attn.metrics.significance import Interval, PairedTest, spread
from seq2seq_attn.report.conclusion import conclude

SHORT, MIDDLE, LONG = (0, 9), (9, 26), (26, None)


def score(value, baseline=None, *, p=0.001, width=2.0):
    interval = Interval(value, value - width, value + width)
    test = None if baseline is None else PairedTest("bootstrap", value - baseline, p, 1000, 1)
    return ArmScore(spread([value]), interval, test)


def scores_of(names, rows, *, p=0.001, measure="bleu", thin=(), width=2.0):
    """`rows`: bounds of a bucket, or "all", to the value of each run; `p`: of all differences, or by row."""

    def row_scores(key):
        values, p_value = rows[key], p[key] if isinstance(p, dict) else p
        others = [score(value, values[0], p=p_value, width=width) for value in values[1:]]
        return {measure: [score(values[0], width=width), *others]}

    buckets = [
        BucketScores(Bucket(*bounds, np.arange(5 if bounds in thin else 100)), row_scores(bounds), {})
        for bounds in rows
        if bounds != "all"
    ]
    return SetScores("test", 1000, names, named_arms(names), {}, row_scores("all"), {}, {}, buckets)


def test_attention_against_the_fixed_vector():
    rows = {SHORT: (97.0, 62.0), MIDDLE: (95.0, 40.0), LONG: (94.1, 13.2), "all": (95.0, 45.0)}
    scores = scores_of(["a", "b"], rows)
    assert conclude(scores, attentions=["additive", "fixed"]) == (
        "On sentences of 26 and more source tokens the attention model (a) scores 94.1 BLEU, the fixed vector (b) "
        "13.2; on those of up to 8 they differ by 35.0."
    )
    assert conclude(scores, attentions=["additive", "dot"]).startswith(
        "On sentences of 26 and more source tokens a scores"
    )
    assert conclude(scores, unit="reference tokens").startswith("On sentences of 26 and more reference tokens a scores")


def test_a_difference_that_chance_explains_is_not_called_one():
    rows = {SHORT: (35.0, 35.4), LONG: (30.0, 20.0), "all": (34.0, 33.0)}
    only_long = conclude(scores_of(["a", "b"], rows, p={SHORT: 0.3, LONG: 0.001, "all": 0.01}))
    assert only_long.endswith("a scores 30.0 BLEU, b 20.0; on those of up to 8 the difference (0.4) is not clear.")
    only_short = conclude(scores_of(["a", "b"], rows, p={SHORT: 0.001, LONG: 0.3, "all": 0.01}))
    assert only_short == (
        "On sentences of up to 8 source tokens a scores 35.0 BLEU, b 35.4; on those of 26 and more the difference "
        "(10.0) is not clear."
    )
    both = conclude(scores_of(["a", "b"], rows))
    assert both.endswith("on those of up to 8 they differ by 0.4, the other way round.")


def test_a_difference_that_one_decimal_does_not_show_is_neither_clear_nor_unclear():
    rows = {SHORT: (35.0, 40.0), LONG: (0.01, 0.03), "all": (20.0, 23.0)}
    assert conclude(scores_of(["a", "b"], rows)).endswith(
        "a scores 35.0 BLEU, b 40.0; on those of 26 and more they differ by less than 0.1."
    )


def test_two_runs_that_do_not_differ():
    rows = {SHORT: (35.0, 35.4), LONG: (30.0, 29.7), "all": (34.1, 34.5)}
    assert conclude(scores_of(["a", "b"], rows, p=0.3)) == (
        "No clear difference: on all 1,000 sentence pairs a scores 34.1 BLEU [32.1, 36.1], b 34.5 [32.5, 36.5]."
    )
    same = {SHORT: (9.0, 9.0), LONG: (9.0, 9.0), "all": (9.0, 9.0)}
    assert conclude(scores_of(["a", "b"], same, p=1.0)) == "a and b score the same: 9.0 BLEU."


@pytest.mark.parametrize("values", [(0.3,), (0.2, 0.9), (0.0, 0.0), (0.1, 0.1, 0.7)])
def test_runs_that_have_learnt_nothing_are_said_to(values):
    names = ["first", "second", "third"][: len(values)]
    rows = {SHORT: tuple(5 * value for value in values), LONG: (0.0,) * len(values), "all": values}
    found = conclude(scores_of(names, rows))
    assert found.startswith("Nothing has been learnt")
    assert all(f"{name} scores {value:.1f} BLEU" in found for name, value in zip(names, values, strict=True))
    one_has = conclude(scores_of(names, rows | {"all": (*values[1:], 1.2)}))
    assert "learnt" not in one_has
    assert "learnt" not in conclude(scores_of(names, rows, measure="ter"))


def test_bleu_that_says_nothing_concludes_nothing():
    scores = scores_of(["a", "b"], {"all": (0.0, 30.0)})
    short = {"bleu": [replace(one, is_too_short=True) for one in scores.scores["bleu"]]}
    assert "30" not in conclude(replace(scores, scores=short))
    also = {**short, "chrf": scores_of(["a", "b"], {"all": (41.0, 77.0)}, measure="chrf").scores["chrf"]}
    assert "77.0" in conclude(replace(scores, scores=also))


def test_one_run():
    rows = {SHORT: (40.0,), LONG: (28.0,), "all": (34.0,)}
    assert conclude(scores_of(["a"], rows)) == (
        "a scores 40.0 BLEU on sentences of up to 8 source tokens, 28.0 on those of 26 and more."
    )
    flat = {SHORT: (35.0,), LONG: (33.0,), "all": (34.0,)}
    assert conclude(scores_of(["a"], flat)).startswith("The length of a sentence makes no clear difference")


@pytest.mark.parametrize("rows", [{}, {SHORT: (40.0, 30.0), LONG: (1.0, 99.0)}])
def test_thin_buckets_conclude_nothing(rows):
    scores = scores_of(["a", "b"], {**rows, "all": (34.0, 30.0)}, thin=(SHORT, LONG))
    assert conclude(scores) == "On all 1,000 sentence pairs a scores 34.0 BLEU [32.0, 36.0], b 30.0 [28.0, 32.0]."
    one = scores_of(["a"], {key: values[:1] for key, values in {**rows, "all": (34.0,)}.items()}, thin=(SHORT, LONG))
    assert conclude(one) == "a scores 34.0 BLEU [32.0, 36.0] on all 1,000 sentence pairs."


def test_the_longest_sentences_are_those_of_the_last_bucket_that_is_not_thin():
    rows = {SHORT: (40.0, 30.0), MIDDLE: (35.0, 20.0), LONG: (1.0, 99.0), "all": (34.0, 30.0)}
    found = conclude(scores_of(["a", "b"], rows, thin=(LONG,)))
    assert found.startswith("On sentences of 9-25 source tokens a scores 35.0 BLEU, b 20.0; on those of up to 8")


def test_many_runs_and_measures_of_which_less_is_better():
    rows = {SHORT: (40.0, 40.0, 40.0), LONG: (30.0, 29.0, 10.0), "all": (34.0, 33.0, 30.0)}
    assert conclude(scores_of(["a", "b", "c"], rows)) == (
        "On sentences of 26 and more source tokens a is best with 30.0 BLEU and c worst with 10.0; all of the others "
        "differ clearly from a."
    )
    ter = conclude(scores_of(["a", "b", "c"], {"all": (34.0, 33.0, 30.0)}, measure="ter", p=0.5))
    assert "c is best with 30.0 TER and a worst with 34.0" in ter


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
    def arm_score(values, test=None):
        mean = sum(values) / len(values)
        return ArmScore(spread(values), Interval(mean, mean - 1, mean + 1), test)

    runs = [*range(len(first) + len(second))]
    members = [tuple(runs[: len(first)]), tuple(runs[len(first) :])]
    arms = [Arm(f"attention={name}", of, of) for name, of in zip(("additive", "fixed"), members, strict=True)]
    of_arms = [arm_score(first), arm_score(second, PairedTest("bootstrap", -5.0, 0.001, 1000, 1))]
    scores = SetScores("test", 1000, list(map(str, runs)), arms, {}, {"bleu": of_arms}, {}, {}, [])
    found = conclude(scores, attentions=["additive"] * len(first) + ["fixed"] * len(second))
    assert found.startswith("On all" if is_clear else "No clear difference: on all")
    assert "the attention model (attention=additive) scores 35.5 BLEU [34.5, 36.5], the fixed vector" in found
