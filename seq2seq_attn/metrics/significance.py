"""Intervals of arms and paired tests between two, by resampling sufficient statistics.

An arm is one run, or several that differ in their seed; its score is the mean of its runs' corpus
scores. In each resample all runs are scored on the same sentence pairs, so an interval covers the
choice of test sentences; the spread over seeds is reported beside it.

With one run in each arm the draws, the precision and the p-values of the randomization are those of
sacreBLEU (a test compares them), except that a trial that ties with the difference counts. All
resamples are scored at once, so a test per length bucket costs milliseconds.

Bootstrap: Koehn 2004, "Statistical significance tests for machine translation evaluation"; p as in
Efron and Tibshirani 1993, "An introduction to the bootstrap", chapter 16: resampled differences are
moved to mean 0 before their absolute values are taken. sacreBLEU's `--paired-bs` does the opposite,
and a single sentence that differs can then be significant.
Approximate randomization: Riezler and Maxwell 2005.

Shapes: N sentence pairs, D statistics of a sentence, R resamples.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from statistics import fmean

import numpy as np
import numpy.typing as npt

from seq2seq_attn.metrics.bleu import CorpusStatistics, FloatArray
from seq2seq_attn.metrics.by_length import MIN_PAIRS
from seq2seq_attn.metrics.table import METRICS

_ROUNDING = 1e-9  # sums of the same numbers in another order differ by some 1e-15
SIGNIFICANT_P = 0.05
CHUNK_CELLS = 1 << 22
"""resamples x sentence pairs held at once, so that memory does not grow with the corpus"""


@dataclass(frozen=True)
class Resampling:
    """How intervals and p-values are resampled; the numbers and the seed are sacreBLEU's."""

    num_resamples: int = 1_000
    """of the bootstrap"""
    num_trials: int = 10_000
    """of the randomization"""
    seed: int = 12345


DEFAULT_RESAMPLING = Resampling()


@dataclass(frozen=True)
class Interval:
    """A value with the 95 % percentile interval of its bootstrap distribution."""

    value: float
    low: float
    high: float

    def to_text(self, num_digits: int = 1, unit: str = "") -> str:
        """`32.1 BLEU [30.9, 33.2]`."""
        digits = f".{num_digits}f"
        return f"{self.value:{digits}}{unit} [{self.low:{digits}}, {self.high:{digits}}]"


@dataclass(frozen=True)
class PairedTest:
    """The difference system minus baseline, and its two-sided p-value."""

    test: str
    """bootstrap or randomization"""
    difference: float
    p_value: float | None
    """None for fewer than `MIN_PAIRS` sentence pairs, which give far too small values"""
    num_samples: int
    seed: int


@dataclass(frozen=True)
class BootstrapTest(PairedTest):
    """The paired bootstrap, which also gives the 95 % interval of the difference."""

    low: float
    high: float

    @property
    def is_significant(self) -> bool:
        """Whether p is below `SIGNIFICANT_P` and the interval excludes 0."""
        if self.p_value is None or self.p_value >= SIGNIFICANT_P:
            return False
        return self.low > 0 or self.high < 0


@dataclass(frozen=True, eq=False)
class BootstrapSamples:
    """Scores of runs over resamples of the sentence pairs; runs that are compared share the
    resamples."""

    runs: tuple[CorpusStatistics, ...]
    values: tuple[float, ...]
    """the corpus score of each run"""
    samples: tuple[FloatArray, ...]
    """[R] for each run"""

    @property
    def mean(self) -> float:
        """The mean of the runs' corpus scores."""
        return fmean(self.values)

    @cached_property
    def means_R(self) -> FloatArray:
        """The mean over the runs in each resample."""
        return np.asarray(np.mean(np.stack(self.samples), axis=0, dtype=np.float64))


def bootstrap(
    runs: Sequence[CorpusStatistics], resampling: Resampling = DEFAULT_RESAMPLING
) -> list[BootstrapSamples]:
    """Score each run by itself over the same R resamples of the sentence pairs; `pool` makes arms
    of the runs."""
    num_pairs = _common_length(runs)
    rng = np.random.default_rng(resampling.seed)
    chunks: list[list[npt.NDArray[np.float32]]] = [[] for _ in runs]
    for size in _chunks(num_pairs, resampling.num_resamples):
        drawn_RN = rng.choice(num_pairs, size=(size, num_pairs), replace=True)
        cells = (drawn_RN + num_pairs * np.arange(size)[:, None]).ravel()
        counts = np.bincount(cells, minlength=size * num_pairs)
        counts_RN = counts.reshape(size, num_pairs).astype(np.float64)
        for run, sums in zip(runs, chunks, strict=True):
            # float32 is exact up to 2^24; sacreBLEU scores its resamples in it, so we do
            sums.append((counts_RN @ run.rows_ND.astype(np.float64)).astype(np.float32))
    samples = []
    for run, sums in zip(runs, chunks, strict=True):
        samples_R = run.score_sums(np.concatenate(sums))
        samples.append(BootstrapSamples((run,), (run.score().score,), (samples_R,)))
    return samples


def pool(arms: Sequence[BootstrapSamples]) -> BootstrapSamples:
    """The runs of several arms as one arm."""
    pooled = BootstrapSamples((), (), ())
    for arm in arms:
        pooled = BootstrapSamples(
            pooled.runs + arm.runs, pooled.values + arm.values, pooled.samples + arm.samples
        )
    return pooled


def percentile_interval(value: float, samples: FloatArray) -> Interval:
    """The interval that leaves out a fortieth of the samples on each side (the order statistics
    sacreBLEU takes)."""
    ordered = np.sort(samples)
    cut = len(ordered) // 40
    return Interval(value, float(ordered[cut]), float(ordered[len(ordered) - cut - 1]))


def mean_difference(
    baseline: BootstrapSamples, arm: BootstrapSamples, resampling: Resampling = DEFAULT_RESAMPLING
) -> BootstrapTest:
    """The paired bootstrap of the two means.

    p is the share of resamples whose difference lies at least as far from the mean of all
    differences as the difference on the whole corpus lies from 0, both plus one; 1 for equal
    scores.
    """
    difference = _rounded(arm.mean - baseline.mean)
    differences_R = arm.means_R - baseline.means_R
    interval = percentile_interval(difference, differences_R)
    p_value = None
    if len(arm.runs[0]) >= MIN_PAIRS:
        p_value = _p_value(differences_R - differences_R.mean(), difference)
    return BootstrapTest(
        "bootstrap",
        difference,
        p_value,
        len(differences_R),
        resampling.seed,
        interval.low,
        interval.high,
    )


def mean_retention(baseline: BootstrapSamples, arm: BootstrapSamples) -> Interval | None:
    """The arm's mean score / the baseline's, with its paired interval; None where the baseline
    scores 0, and for error rates, of which less is better."""
    is_error_rate = METRICS[baseline.runs[0].name].is_lower_better
    if is_error_rate or baseline.mean == 0 or not baseline.means_R.all():
        return None
    return percentile_interval(arm.mean / baseline.mean, arm.means_R / baseline.means_R)


def paired_randomization(
    baseline: CorpusStatistics,
    system: CorpusStatistics,
    resampling: Resampling = DEFAULT_RESAMPLING,
) -> PairedTest:
    """Paired approximate randomization: each trial swaps the two systems' outputs sentence by
    sentence with probability one half. p is the share of trials whose absolute difference is at
    least that of the systems, both plus one; 1 for equal scores.

    sacreBLEU's `--paired-ar` counts strictly larger differences. Where the systems differ in a few
    sentences, most trials tie with the difference, and its p is far too small: 1 / (trials + 1) for
    a single sentence, instead of 1.
    """
    num_pairs = _common_length((baseline, system))
    num_trials = resampling.num_trials
    difference = _rounded(system.score().score - baseline.score().score)
    p_value = None
    if num_pairs >= MIN_PAIRS:
        differences_R = _randomized_differences(baseline, system, resampling)
        p_value = _p_value(differences_R, difference)
    return PairedTest("randomization", difference, p_value, num_trials, resampling.seed)


def _randomized_differences(
    baseline: CorpusStatistics, system: CorpusStatistics, resampling: Resampling
) -> FloatArray:
    """The differences of two systems that swap each sentence with probability one half, [R]."""
    baseline_D = baseline.rows_ND.sum(axis=0).astype(np.float64)
    system_D = system.rows_ND.sum(axis=0).astype(np.float64)
    gained_ND = (baseline.rows_ND - system.rows_ND).astype(np.float64)
    rng = np.random.default_rng(resampling.seed)
    differences = []
    for size in _chunks(len(baseline), resampling.num_trials):
        keeps_RN = rng.integers(2, size=(size, len(baseline)), dtype=bool)
        mixed_RD = system_D + keeps_RN @ gained_ND  # counts: exact in float64
        rest_RD = baseline_D + system_D - mixed_RD
        differences.append(baseline.score_sums(mixed_RD) - system.score_sums(rest_RD))
    return np.concatenate(differences)


def _rounded(difference: float) -> float:
    """0 for a difference that rounding makes."""
    return 0.0 if abs(difference) < _ROUNDING else difference


def _p_value(samples_R: FloatArray, difference: float) -> float:
    """The share of samples that are at least as large as the difference, in absolute value."""
    num_as_large = int(np.sum(np.abs(samples_R) >= abs(difference) - _ROUNDING))
    return (num_as_large + 1) / (len(samples_R) + 1)  # plus one as in sacreBLEU, from multeval


def _common_length(systems: Sequence[CorpusStatistics]) -> int:
    forms = {(len(system), system.name) for system in systems}
    if len(forms) != 1:
        raise ValueError(
            "systems of a paired test need the same sentence pairs and the same metric"
        )
    return len(systems[0])


def _chunks(num_pairs: int, num_rows: int) -> Iterator[int]:
    """The numbers of rows of a resampling that are drawn at once. The chunks continue one stream of
    draws."""
    # Multiples of 32 rows: numpy draws booleans 32 to a word, so only then do chunks continue the
    # undivided stream.
    chunk = max(32, CHUNK_CELLS // num_pairs // 32 * 32)
    for start in range(0, num_rows, chunk):
        yield min(chunk, num_rows - start)
