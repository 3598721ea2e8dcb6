"""Confidence intervals of arms and paired tests between arms, by resampling sentence statistics.

An arm is a group of runs that differ only in their seed, or a single run. The score of an arm is
the mean of its runs' corpus scores. Each resample scores all runs on the same sentence pairs. So
the interval of a score covers the choice of test sentences, and the spread over seeds is reported
beside the interval. If an arm has several seeds, a test between two arms covers the seeds too
(`seeds.py`). A test between single runs says nothing about other seeds.

With one run in each arm, the random draws equal sacreBLEU's; a unit test compares them. A thousand
resamples of a bucket (a range of lengths) cost about ten milliseconds.

The bootstrap follows Koehn 2004, "Statistical significance tests for machine translation
evaluation". Its p-value follows Efron and Tibshirani 1993, "An introduction to the bootstrap",
chapter 16: the mean of the resampled differences is subtracted before their absolute values are
taken. sacreBLEU's `--paired-bs` takes absolute values first, and then a single sentence that
differs can be significant.

Shapes: N sentence pairs, D statistics of a sentence, R resamples.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from statistics import fmean

import numpy as np

from seq2seq_attn.metrics.bleu import CorpusStatistics, FloatArray
from seq2seq_attn.metrics.by_length import MIN_PAIRS
from seq2seq_attn.metrics.seeds import seeds_and_sentences
from seq2seq_attn.metrics.table import METRICS

_ROUNDING = 1e-9  # Sums of the same numbers in another order differ by about 1e-15.
SIGNIFICANT_P = 0.05
CHUNK_CELLS = 1 << 22
"""the most cells of an array [resamples, sentence pairs], so that memory does not grow with the
corpus"""


@dataclass(frozen=True)
class Resampling:
    """Options of resampling, with sacreBLEU's defaults."""

    num_resamples: int = 1_000
    seed: int = 12345


DEFAULT_RESAMPLING = Resampling()


@dataclass(frozen=True)
class Interval:
    """A value with the 95 % percentile interval of its bootstrap distribution."""

    value: float
    low: float
    high: float

    def to_text(self, num_digits: int = 1, unit: str = "") -> str:
        """Return the interval as text, for example `32.1 BLEU [30.9, 33.2]`."""
        digits = f".{num_digits}f"
        return f"{self.value:{digits}}{unit} [{self.low:{digits}}, {self.high:{digits}}]"


@dataclass(frozen=True)
class BootstrapTest:
    """The difference in score between an arm and the baseline, by the paired bootstrap.

    If an arm has several seeds, p and the interval cover seeds and sentences (`seeds.py`).
    """

    test: str
    """`bootstrap`, or `bootstrap and seeds` if an arm has several seeds"""
    difference: float
    """the arm's score minus the baseline's score"""
    p_value: float | None
    """the two-sided p-value; None for fewer than `MIN_PAIRS` sentence pairs, for which p would be
    far too small"""
    num_samples: int
    seed: int
    p_corrected: float | None = field(kw_only=True)
    """p with Holm's correction over all arms that are compared with the baseline (`holm`)"""
    low: float
    """lower end of the difference's 95 % interval"""
    high: float

    @property
    def is_significant(self) -> bool:
        """Tell whether the corrected p is below `SIGNIFICANT_P` and the interval excludes 0."""
        if self.p_corrected is None or self.p_corrected >= SIGNIFICANT_P:
            return False
        return self.low > 0 or self.high < 0


@dataclass(frozen=True, eq=False)
class BootstrapSamples:
    """The scores of an arm's runs on resamples of the sentence pairs.

    Arms can be compared only if they were scored on the same resamples.
    """

    runs: tuple[CorpusStatistics, ...]
    samples: tuple[FloatArray, ...]
    """for each run, its scores on the resamples, [R]"""

    @cached_property
    def values(self) -> list[float]:
        """Return the corpus score of each run."""
        return [run.score().score for run in self.runs]

    @property
    def mean(self) -> float:
        """Return the mean of the runs' corpus scores."""
        return fmean(self.values)

    @cached_property
    def means_R(self) -> FloatArray:
        """Return the mean score of the runs on each resample."""
        return np.asarray(np.mean(np.stack(self.samples), axis=0, dtype=np.float64))

    @property
    def interval(self) -> Interval:
        """Return the mean of the runs' corpus scores with its interval."""
        return percentile_interval(self.mean, self.means_R)


def bootstrap(
    runs: Sequence[CorpusStatistics], resampling: Resampling = DEFAULT_RESAMPLING
) -> list[BootstrapSamples]:
    """Score each run on the same R resamples of the sentence pairs, and return each run as an arm.

    All runs have statistics of the same sentence pairs under the same metric. `pool` joins arms.
    """
    num_pairs = len(runs[0])
    rng = np.random.default_rng(resampling.seed)
    scores_by_run: list[list[FloatArray]] = [[] for _ in runs]
    for size in _chunks(num_pairs, resampling.num_resamples):
        drawn_RN = rng.choice(num_pairs, size=(size, num_pairs), replace=True)
        cells = (drawn_RN + num_pairs * np.arange(size)[:, None]).ravel()
        counts = np.bincount(cells, minlength=size * num_pairs)
        counts_RN = counts.reshape(size, num_pairs).astype(np.float64)
        for run, scores in zip(runs, scores_by_run, strict=True):
            scores.append(run.score_sums(counts_RN @ run.rows_ND.astype(np.float64)))
    arms = []
    for run, scores in zip(runs, scores_by_run, strict=True):
        arms.append(BootstrapSamples((run,), (np.concatenate(scores),)))
    return arms


def pool(arms: Sequence[BootstrapSamples]) -> BootstrapSamples:
    """Join the runs of several arms into one arm."""
    runs = [run for arm in arms for run in arm.runs]
    samples = [samples_R for arm in arms for samples_R in arm.samples]
    return BootstrapSamples(tuple(runs), tuple(samples))


def percentile_interval(value: float, samples: FloatArray) -> Interval:
    """Return the interval that leaves out a fortieth of the samples on each side, as in
    sacreBLEU."""
    ordered = np.sort(samples)
    num_outside = len(ordered) // 40
    low = float(ordered[num_outside])
    high = float(ordered[len(ordered) - num_outside - 1])
    return Interval(value, low, high)


def mean_difference(
    baseline: BootstrapSamples, arm: BootstrapSamples, resampling: Resampling = DEFAULT_RESAMPLING
) -> BootstrapTest:
    """Compare the means of two arms by the paired bootstrap.

    Let d be the difference on the whole corpus. A resample is extreme if its difference lies at
    least |d| away from the mean of all resampled differences. p is (number of extreme resamples +
    1) / (number of resamples + 1), which is 1 if the arms have equal scores. p is at least the
    share of resamples whose difference is 0 or has the opposite sign of d. This matters if a single
    very long line causes the difference: a third of the resamples lack this line.

    If an arm has several seeds, p and the interval come from `seeds_and_sentences` instead.
    """
    difference = _rounded(arm.mean - baseline.mean)
    differences_R = arm.means_R - baseline.means_R
    if len(baseline.runs) == len(arm.runs) == 1:
        test = "bootstrap"
        interval = percentile_interval(difference, differences_R)
        share_not_of_same_sign = float(np.mean(differences_R * difference <= 0))
        p_of_shift = _p_value(differences_R - differences_R.mean(), difference)
        p = max(share_not_of_same_sign, p_of_shift)
    else:
        test = "bootstrap and seeds"
        p, half_width = seeds_and_sentences(
            difference,
            float(differences_R.var()),
            [baseline.values, arm.values],
            [baseline.samples, arm.samples],
        )
        interval = Interval(difference, difference - half_width, difference + half_width)
    p_value = p if len(arm.runs[0]) >= MIN_PAIRS else None
    return BootstrapTest(
        test,
        difference,
        p_value,
        len(differences_R),
        resampling.seed,
        interval.low,
        interval.high,
        p_corrected=p_value,
    )


def holm(tests: Sequence[BootstrapTest]) -> list[BootstrapTest]:
    """Return the tests of several arms against the same baseline with corrected p-values.

    The more arms are compared, the more likely an arm seems to differ by chance alone. Holm 1979,
    "A simple sequentially rejective multiple test procedure", keeps the probability of any such
    error below the level of significance: with p_1 <= ... <= p_m, the corrected p_k is
    max_{j <= k} min(1, (m - j + 1) p_j).
    """
    p_values = [test.p_value for test in tests if test.p_value is not None]
    corrected: dict[float | None, float] = {}
    largest = 0.0
    for rank, p_value in enumerate(sorted(p_values)):
        largest = max(largest, min(1.0, (len(p_values) - rank) * p_value))
        corrected.setdefault(p_value, largest)
    return [replace(test, p_corrected=corrected.get(test.p_value)) for test in tests]


def mean_retention(baseline: BootstrapSamples, arm: BootstrapSamples) -> Interval | None:
    """Return the arm's mean score divided by the baseline's mean score, with its paired interval.

    Return None if the baseline scores 0 on the corpus or on a resample, and for error rates,
    where a lower score is better.
    """
    is_error_rate = METRICS[baseline.runs[0].name].is_lower_better
    if is_error_rate or baseline.mean == 0 or not baseline.means_R.all():
        return None
    return percentile_interval(arm.mean / baseline.mean, arm.means_R / baseline.means_R)


def _rounded(difference: float) -> float:
    """Return 0 for a difference so small that rounding explains it."""
    return 0.0 if abs(difference) < _ROUNDING else difference


def _p_value(samples_R: FloatArray, difference: float) -> float:
    """Return the share of samples whose absolute value is at least that of the difference."""
    num_as_large = int(np.sum(np.abs(samples_R) >= abs(difference) - _ROUNDING))
    return (num_as_large + 1) / (len(samples_R) + 1)  # sacreBLEU, like multeval, adds one to both.


def _chunks(num_pairs: int, num_rows: int) -> Iterator[int]:
    """Yield the numbers of resamples to draw at once, `num_rows` in total.

    Drawing in chunks gives the same numbers as drawing all rows at once.
    """
    chunk = max(1, CHUNK_CELLS // num_pairs)
    for start in range(0, num_rows, chunk):
        yield min(chunk, num_rows - start)
