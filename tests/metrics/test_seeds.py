"""The test over seeds and sentences: Student's t, both variances, and how often it errs."""

import numpy as np
import pytest

from seq2seq_attn.metrics.seeds import seeds_and_sentences, student_p, student_quantile

NUM_SENTENCES = 200
RNG_SEED = 5


def compare(first, second, num_resamples=200):
    """Compare arms by the mean over sentences of made-up scores, a row for each seed."""
    rng = np.random.default_rng(1)
    drawn = rng.choice(first.shape[1], size=(num_resamples, first.shape[1]))
    values = [arm.mean(axis=1) for arm in (first, second)]
    samples = [[row[drawn].mean(axis=1) for row in arm] for arm in (first, second)]
    differences_R = np.mean(samples[1], axis=0) - np.mean(samples[0], axis=0)
    difference = values[1].mean() - values[0].mean()
    p, half_width = seeds_and_sentences(difference, differences_R.var(), values, samples)
    return difference, p, half_width


def make_arm(rng, num_seeds, seed_spread, sentence_spread=1.0, mean=0.0):
    """Scores of seeds and sentences whose seeds differ by `seed_spread` on the whole."""
    of_seeds = mean + rng.normal(0, seed_spread, (num_seeds, 1))
    return of_seeds + rng.normal(0, sentence_spread, (num_seeds, NUM_SENTENCES))


@pytest.mark.parametrize(
    ("t", "freedom", "p"),  # tables of Student's t
    [(12.706, 1, 0.05), (4.303, 2, 0.05), (2.132, 4, 0.1), (1.96, 1e4, 0.05)],
)
def test_student_p_equals_the_tables(t, freedom, p):
    assert student_p(t, freedom) == pytest.approx(p, abs=1e-4)
    assert student_p(-t, freedom) == student_p(t, freedom)


@pytest.mark.parametrize(("freedom", "quantile"), [(1, 12.7062), (4, 2.77645), (2.5, 3.57465)])
def test_student_quantile_equals_the_tables(freedom, quantile):
    assert student_quantile(freedom) == pytest.approx(quantile, rel=1e-3)


@pytest.mark.parametrize("seed_spread", [0.0, 0.07, 0.5])
@pytest.mark.parametrize(("num_first", "num_second"), [(3, 3), (1, 3), (5, 5)])
def test_arms_of_one_setting_seldom_differ(seed_spread, num_first, num_second):
    rng = np.random.default_rng(RNG_SEED)
    num_found = 0
    for _ in range(300):
        first = make_arm(rng, num_first, seed_spread)
        _, p, _ = compare(first, make_arm(rng, num_second, seed_spread), 50)
        num_found += p < 0.05
    assert num_found <= 25  # 5 % of 300, and two and a half standard deviations


def test_a_better_arm_is_found_by_three_seeds_each():
    rng = np.random.default_rng(RNG_SEED)
    num_found = 0
    for _ in range(100):
        first = make_arm(rng, 3, 0.07)
        _, p, _ = compare(first, make_arm(rng, 3, 0.07, mean=0.4), 50)
        num_found += p < 0.05
    assert num_found >= 80


def test_the_spread_of_seeds_counts_where_sentences_agree():
    """Every sentence has the same difference, so resampled sentences say nothing of chance."""
    line = np.zeros(NUM_SENTENCES)
    alike = np.stack([line, line + 0.1, line - 0.1])
    spread = np.stack([line, line + 3, line - 3])
    assert compare(alike, alike + 1)[1] < 0.001
    assert compare(spread, spread + 1)[1] > 0.5


def test_an_arm_with_one_seed_borrows_the_variance_of_the_other():
    line = np.zeros(NUM_SENTENCES)
    several = np.stack([line, line + 1, line - 1])
    _, p, half_width = compare(several, several[:1] + 3)
    # Student's t with 2 degrees of freedom of 3 / sqrt(1 * (1 + 1 / 3))
    assert p == pytest.approx(0.1216, abs=1e-3)
    assert half_width == pytest.approx(4.3027 * (4 / 3) ** 0.5, rel=1e-3)


def test_p_and_the_interval_agree():
    rng = np.random.default_rng(RNG_SEED)
    for mean in np.linspace(0, 0.6, 13):
        difference, p, half_width = compare(make_arm(rng, 3, 0.1), make_arm(rng, 3, 0.1, mean=mean))
        assert (p < 0.05) == (abs(difference) > half_width)


def test_equal_arms_do_not_differ():
    arm = np.zeros((3, NUM_SENTENCES))
    assert compare(arm, arm) == (0.0, 1.0, 0.0)
