"""Compare two arms that have several seeds: a test over seeds and sentences.

A difference between the means of two arms may be due to the choice of the test sentences, and to
the choice of the seeds. Seeds and sentences are crossed, so their variances are estimated apart
and added, and the difference is compared with Student's t:

    V = V_sentences + max(0, sum_a w_a (s_a^2 - e_a))
    f = V^2 / sum_a (w_a s_a^2)^2 / (n_a - 1)
    p = P(|t_f| >= |d| / sqrt(V))

d is the difference of the means. V_sentences is the variance of d over the bootstrap's resamples of
the sentences. Arm a has n_a seeds, s_a^2 is the sample variance of their scores, and w_a = 1 / n_a.
An arm with one seed borrows the variance of the other arm, whose w_a is then 1 / n_a + 1. A part of
s_a^2 is due to the sentences and already in V_sentences. That part, e_a, is what another choice of
sentences adds to s_a^2: the mean of the variance on the resamples, minus s_a^2. The degrees of
freedom f follow Satterthwaite 1946, "An approximate distribution of estimates of variance
components", and Welch 1947.

Clark 1973, "The language-as-fixed-effect fallacy", has the argument for both variances. Sellam et
al. 2022, "The MultiBERTs", resample seeds and sentences instead (Multi-Bootstrap). With three seeds
in an arm, the variance of three resampled values is a third too small and has no allowance for
being uncertain, so that test finds a difference too often. A permutation of three against three
runs has 20 cases, and its p is never below 0.1. `docs/evaluate.md` has the measured error rates.

Shapes: R resamples.
"""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

_ANGLES = np.linspace(0.0, np.pi / 2, 20_001)
_MOST_FREEDOM = 10_000.0
"""With more degrees of freedom, Student's t equals the normal distribution to five digits."""

Samples = Sequence[npt.NDArray[np.floating[Any]]]


def seeds_and_sentences(
    difference: float,
    sentence_variance: float,
    values_by_arm: Sequence[Sequence[float]],
    samples_by_arm: Sequence[Samples],
) -> tuple[float, float]:
    """Return p of a difference between two arms, and half the width of its 95 % interval.

    At least one arm has several seeds.

    Args:
        sentence_variance: The variance of the difference over resamples of the sentences.
        values_by_arm: For each arm, the score of each seed.
        samples_by_arm: For each arm and seed, the scores on R resamples of the sentences.
    """
    seed_variance = 0.0
    uncertainty = 0.0
    fewest = math.inf
    # The variance of an arm with several seeds counts for another arm with one seed too.
    borrowed = 1.0 if min(map(len, values_by_arm)) == 1 else 0.0
    for values, samples in zip(values_by_arm, samples_by_arm, strict=True):
        num_seeds = len(values)
        if num_seeds == 1:
            continue
        weight = 1 / num_seeds + borrowed
        variance = float(np.var(values, ddof=1))
        on_resamples = float(np.mean(np.var(np.stack(samples), axis=0, ddof=1, dtype=np.float64)))
        due_to_sentences = on_resamples - variance
        seed_variance += weight * (variance - due_to_sentences)
        uncertainty += (weight * variance) ** 2 / (num_seeds - 1)
        fewest = min(fewest, num_seeds - 1)
    total = sentence_variance + max(0.0, seed_variance)
    if total == 0:
        return float(difference == 0), 0.0
    freedom = _MOST_FREEDOM
    if uncertainty > 0:
        freedom = min(max(total**2 / uncertainty, fewest), _MOST_FREEDOM)
    deviation = math.sqrt(total)
    return student_p(difference / deviation, freedom), student_quantile(freedom) * deviation


def student_p(t: float, freedom: float) -> float:
    """Return the probability that Student's t has at least the absolute value `t`."""
    angle = math.atan(abs(t) / math.sqrt(freedom))
    return max(0.0, 1.0 - float(np.interp(angle, _ANGLES, _masses(freedom))))


def student_quantile(freedom: float) -> float:
    """Return the value that the absolute value of Student's t stays below in 95 % of all cases."""
    angle = float(np.interp(0.95, _masses(freedom), _ANGLES))
    return math.sqrt(freedom) * math.tan(angle)


def _masses(freedom: float) -> npt.NDArray[np.float64]:
    """Return the probability that |t| is below sqrt(f) tan(angle), for each of `_ANGLES`.

    By this substitution, the density of t becomes cos(angle)^(f - 1), which is finite and has a
    finite range, so the trapezoidal rule is exact to six digits.
    """
    density = np.cos(_ANGLES) ** (freedom - 1)
    mass = np.cumsum((density[1:] + density[:-1]) / 2)
    return np.concatenate([[0.0], mass / mass[-1]])
