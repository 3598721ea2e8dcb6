"""Arms of several seeds: what plain Python makes of them (one seed each: `test_significance.py`)."""

from __future__ import annotations

import statistics

import numpy as np
import pytest
from sacrebleu.metrics.bleu import BLEU

from seq2seq_attn.metrics.seeds import Spread, bootstrap, pool, spread
from seq2seq_attn.metrics.significance import bootstrap_scores
from tests.metrics.corpora import make_hypotheses
from tests.metrics.pairs import arm_bootstrap, arm_retention
from tests.metrics.test_significance import BASELINE, REFERENCES, SYSTEM, statistics_of

ARM = [BASELINE, make_hypotheses(REFERENCES, seed=11, noise=0.32)]
OTHER = [SYSTEM, *(make_hypotheses(REFERENCES, seed=seed, noise=0.4) for seed in (12, 13))]


def plain_scores(hypotheses, num_resamples):
    """sacreBLEU's corpus score of the whole, and of each resample, drawn anew."""
    drawn = np.random.default_rng(12345).choice(len(REFERENCES), size=(num_resamples, len(REFERENCES)), replace=True)
    metric = BLEU()
    sampled = ([[lines[i] for i in row] for lines in (hypotheses, REFERENCES)] for row in drawn.tolist())
    samples = [metric.corpus_score(lines, [references]).score for lines, references in sampled]
    return metric.corpus_score(hypotheses, [REFERENCES]).score, samples


def test_several_seeds_equal_plain_python():
    baselines, systems = statistics_of("bleu", *ARM), statistics_of("bleu", *OTHER)
    ratio = arm_retention(baselines, systems, num_resamples=200)
    test = arm_bootstrap(baselines, systems, num_resamples=200)
    scores = [[plain_scores(hypotheses, 0)[0] for hypotheses in arm] for arm in (ARM, OTHER)]
    means = [sum(of_arm) / len(of_arm) for of_arm in scores]
    assert ratio.value == pytest.approx(means[1] / means[0], abs=1e-9)
    assert test.difference == pytest.approx(means[1] - means[0], abs=1e-9)
    samples = [bootstrap_scores(*of_arm, num_resamples=200) for of_arm in (baselines, systems)]
    of_baseline, of_system = (
        [sum(float(one[r]) for one in of_arm) / len(of_arm) for r in range(200)] for of_arm in samples
    )
    ratios = sorted(b / a for a, b in zip(of_baseline, of_system, strict=True))
    assert (ratio.low, ratio.high) == pytest.approx((ratios[5], ratios[194]), abs=1e-9)
    differences = [abs(b - a) for a, b in zip(of_baseline, of_system, strict=True)]
    mean = sum(differences) / 200
    larger = sum(one - mean > abs(means[1] - means[0]) for one in differences)
    assert test.p_value == pytest.approx((larger + 1) / 201, abs=1e-9)


def test_every_run_meets_the_same_resampled_sentences():
    of_runs = [plain_scores(hypotheses, 60)[1] for hypotheses in (*ARM, *OTHER)]
    ratios = sorted(sum(row[2:]) / 3 / (sum(row[:2]) / 2) for row in zip(*of_runs, strict=True))
    found = arm_retention(statistics_of("bleu", *ARM), statistics_of("bleu", *OTHER), num_resamples=60)
    # sacreBLEU scores resamples in float32 and we follow it: hence not 1e-9 here
    assert (found.low, found.high) == pytest.approx((ratios[1], ratios[58]), abs=1e-5)


@pytest.mark.parametrize("arm", [ARM, OTHER])
def test_an_arm_does_not_differ_from_itself_in_another_order_or_repeated(arm):
    """The means of repeated runs differ by rounding."""
    runs = statistics_of("bleu", *arm)
    for same in (runs[::-1], 3 * runs, 5 * runs):
        test = arm_bootstrap(runs, same, num_resamples=50)
        assert (test.difference, test.p_value) == (0.0, 1.0)


def test_a_clear_difference_and_a_baseline_at_zero():
    worse = [make_hypotheses(REFERENCES, seed=seed, noise=0.9) for seed in (21, 22)]
    assert arm_bootstrap(statistics_of("bleu", *ARM), statistics_of("bleu", *worse)).p_value < 0.01
    nothing = statistics_of("bleu", ["zzz"] * len(REFERENCES), ["yyy"] * len(REFERENCES))
    assert arm_retention(nothing, statistics_of("bleu", *ARM)) is None


def test_less_of_ter_is_no_loss():
    assert arm_retention(statistics_of("ter", *ARM), statistics_of("ter", *OTHER)) is None


def test_spread_is_that_of_a_sample():
    values = [31.5, 30.25, 33.0]
    found = spread(values)
    assert found == Spread(pytest.approx(sum(values) / 3), found.standard_deviation, 30.25, 33.0, 3)
    assert found.standard_deviation == pytest.approx(statistics.stdev(values), abs=1e-9)
    assert spread([2.0]) == Spread(2.0, None, 2.0, 2.0, 1)


def test_joined_runs_are_scored_by_their_mean():
    first, second = bootstrap(statistics_of("bleu", *ARM), num_resamples=40)
    pooled = pool([first, second])
    assert pooled.mean == pytest.approx((first.mean + second.mean) / 2, abs=1e-9)
    np.testing.assert_allclose(pooled.means_R, (first.means_R + second.means_R) / 2, rtol=0, atol=1e-9)
