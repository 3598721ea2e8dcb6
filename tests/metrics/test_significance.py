"""Intervals and paired tests agree with sacreBLEU and with plain Python."""

import numpy as np
import pytest
from sacrebleu.metrics.bleu import BLEU

from seq2seq_attn.metrics import significance
from seq2seq_attn.metrics.bleu import Measure
from seq2seq_attn.metrics.significance import (
    BootstrapTest,
    Interval,
    Resampling,
    bootstrap,
    holm,
    mean_difference,
    mean_retention,
    percentile_interval,
    pool,
)
from tests.metrics.corpora import make_hypotheses, make_references

REFERENCES = make_references(120)
BASELINE = make_hypotheses(REFERENCES, seed=1, noise=0.30)
SYSTEM = make_hypotheses(REFERENCES, seed=2, noise=0.36)
ARM = [BASELINE, make_hypotheses(REFERENCES, seed=11, noise=0.32)]
OTHER = [SYSTEM, *(make_hypotheses(REFERENCES, seed=seed, noise=0.4) for seed in (12, 13))]
WRONG = ["zzz"] * 120
HUNDRED = Resampling(num_resamples=100)


def statistics_of(name, *systems, references=REFERENCES):
    measure = Measure(name, references)
    return [measure.statistics(system) for system in systems]


def arms(*members):
    """Each list of runs as one arm, over the same resamples."""
    samples = iter(bootstrap([run for runs in members for run in runs], HUNDRED))
    return [pool([next(samples) for _ in runs]) for runs in members]


def paired_bootstrap(baseline, system):
    return mean_difference(*arms([baseline], [system]))


def test_intervals_equal_plain_resampling():
    """SacreBLEU's corpus score of each resample, drawn anew."""
    [arm] = arms(statistics_of("bleu", BASELINE))
    interval = percentile_interval(arm.mean, arm.means_R)
    num_pairs = len(REFERENCES)
    scores = []
    for row in np.random.default_rng(12345).choice(num_pairs, size=(100, num_pairs)).tolist():
        lines = [BASELINE[index] for index in row]
        references = [REFERENCES[index] for index in row]
        scores.append(BLEU().corpus_score(lines, [references]).score)
    scores.sort()
    assert (interval.low, interval.high) == pytest.approx((scores[2], scores[97]), abs=1e-9)


def test_several_seeds_are_compared_by_their_means():
    members = statistics_of("bleu", *ARM), statistics_of("bleu", *OTHER)
    pooled = arms(*members)
    first, second = (np.mean([run.score().score for run in runs]) for runs in members)
    first_R, second_R = (np.mean(arm.samples, axis=0) for arm in pooled)
    ratio = mean_retention(*pooled)
    ratios = np.sort(second_R / first_R)
    expected = (second / first, ratios[2], ratios[97])
    assert (ratio.value, ratio.low, ratio.high) == pytest.approx(expected, abs=1e-9)
    test = mean_difference(*pooled)
    differences = np.sort(second_R - first_R)
    assert test.difference == pytest.approx(second - first, abs=1e-9)
    assert (test.low + test.high) / 2 == pytest.approx(test.difference)
    assert test.high - test.low > differences[97] - differences[2]  # the seeds add to it


def test_seeds_that_spread_explain_what_sentences_do_not():
    """Two of three runs of each arm are alike; the third decides its mean."""
    good, bad = statistics_of("bleu", BASELINE, SYSTEM)
    by_sentences = paired_bootstrap(bad, good)
    assert by_sentences.p_value < 0.05
    test = mean_difference(*arms([good, bad, bad], [good, good, bad]))
    assert test.difference == pytest.approx(by_sentences.difference / 3)
    assert test.p_value > 0.3
    assert not test.is_significant


@pytest.mark.parametrize(
    ("p_values", "corrected"),
    [
        ([0.03, 0.04], [0.06, 0.06]),
        ([0.04, 0.01, 0.03], [0.06, 0.03, 0.06]),
        ([0.5, 0.9, 0.6], [1.0, 1.0, 1.0]),
        ([None, None], [None, None]),
        ([], []),
    ],
)
def test_holm(p_values, corrected):
    tests = [BootstrapTest("bootstrap", 1.0, p, 1000, 1, 0.0, 2.0, p_corrected=p) for p in p_values]
    assert [test.p_corrected for test in holm(tests)] == pytest.approx(corrected)
    assert [test.p_value for test in holm(tests)] == p_values


def test_one_line_of_many_is_not_significant():
    references = ["man woman dog " * 20, *make_references(299)]
    lines = make_hypotheses(references[1:], seed=2, noise=0.3)
    systems = ["", *lines], [references[0], *lines]
    test = paired_bootstrap(*statistics_of("bleu", *systems, references=references))
    assert test.difference > 1
    assert test.p_value > 0.1
    assert test.low <= 0


def test_differences_are_centred_before_their_absolute_values_are_taken():
    near = make_hypotheses(REFERENCES, seed=3, noise=0.30)
    baseline, system = arms(*([run] for run in statistics_of("bleu", BASELINE, near)))
    differences_R = system.means_R - baseline.means_R
    test = mean_difference(baseline, system)
    is_far_R = np.abs(differences_R - differences_R.mean()) >= abs(test.difference)
    assert test.p_value == pytest.approx((is_far_R.sum() + 1) / 101)
    sizes_R = np.abs(differences_R)  # sacreBLEU centres these
    is_far_R = np.abs(sizes_R - sizes_R.mean()) >= abs(test.difference)
    assert test.p_value > 0.1 + (is_far_R.sum() + 1) / 101


def test_one_endless_line_is_not_significant():
    """BLEU is not linear: where the line is drawn twice, the difference is hardly larger."""
    endless = ["zzz " * 30_000, *BASELINE[1:]]
    test = paired_bootstrap(*statistics_of("bleu", BASELINE, endless))
    assert test.difference < -20
    assert test.p_value > 0.3


@pytest.mark.parametrize(
    ("p_value", "low", "high", "is_significant"),
    [
        (0.049, 0.1, 2.0, True),
        (0.049, -2.0, -0.1, True),
        (0.051, 0.1, 2.0, False),
        (0.01, 0.0, 2.0, False),
        (None, 0.1, 2.0, False),
    ],
)
def test_significance_needs_the_corrected_p_and_the_interval(p_value, low, high, is_significant):
    test = BootstrapTest("bootstrap", 1.0, 0.001, 1000, 1, low, high, p_corrected=p_value)
    assert test.is_significant == is_significant


def test_few_pairs_have_a_difference_and_no_p():
    pair = statistics_of("bleu", BASELINE, REFERENCES)
    few = paired_bootstrap(*(run.subset(range(49)) for run in pair))
    assert few.difference > 0
    assert few.p_value is None
    assert paired_bootstrap(*(run.subset(range(50)) for run in pair)).p_value < 0.02


@pytest.mark.parametrize("arm", [ARM, OTHER])
def test_an_arm_does_not_differ_from_itself_in_another_order_or_repeated(arm):
    """The means of repeated runs differ by rounding."""
    runs = statistics_of("bleu", *arm)
    for same in (runs[::-1], 3 * runs, 5 * runs):
        test = mean_difference(*arms(runs, same))
        assert (test.difference, test.p_value) == (0.0, 1.0)


def test_chunks_draw_the_same_as_one_piece(monkeypatch):
    systems = statistics_of("bleu", BASELINE, SYSTEM)

    def resample():
        return [run.means_R.tolist() for run in bootstrap(systems, HUNDRED)]

    whole = resample()
    # 50 of 100 rows of 120 pairs
    monkeypatch.setattr(significance, "CHUNK_CELLS", 50 * 120)
    assert resample() == whole


@pytest.mark.parametrize(
    ("name", "baseline", "system"),
    [
        ("bleu", BASELINE, BASELINE),
        ("bleu", WRONG, ["qqq"] * 120),
        ("bleu", WRONG, [""] * 120),
        ("chrf", WRONG, ["ZZZ"] * 120),
    ],
)
def test_equal_scores_do_not_differ_whatever_the_sentences(name, baseline, system):
    result = paired_bootstrap(*statistics_of(name, baseline, system))
    assert (result.difference, result.p_value) == (0.0, 1.0)


@pytest.mark.parametrize(
    ("name", "baseline", "expected"),
    [
        ("bleu", SYSTEM, Interval(1.0, 1.0, 1.0)),
        ("bleu", WRONG, None),  # 0
        ("wer", BASELINE, None),  # less is better
    ],
)
def test_retention(name, baseline, expected):
    first, second = statistics_of(name, baseline, SYSTEM)
    assert mean_retention(*arms([first], [second])) == expected
