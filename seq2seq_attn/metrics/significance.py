"""Confidence intervals of arms and paired tests between arms, by resampling sentence statistics.

An arm is a group of runs that differ only in their seed, or a single run. Its score is the mean of
its runs' corpus scores. Each resample scores all runs on the same sentence pairs. So the interval
of a score covers the choice of test sentences, and the spread over seeds is reported beside it. A
test between two arms covers the seeds too if an arm has several (`seeds.py`); between single runs,
it says nothing about other seeds.

With one run in each arm, the random draws and the precision equal sacreBLEU's; a test compares
them. The p-values of the randomization test equal sacreBLEU's as well, except that a trial whose
difference ties with the systems' difference counts. All resamples are scored at once, so a test for
a bucket (a range of lengths) costs milliseconds.

The bootstrap follows Koehn 2004, "Statistical significance tests for machine translation
evaluation". Its p-value follows Efron and Tibshirani 1993, "An introduction to the bootstrap",
chapter 16: the mean of the resampled differences is subtracted before their absolute values are
taken. sacreBLEU's `--paired-bs` takes absolute values first, and then a single sentence that
differs can be significant. Approximate randomization follows Riezler and Maxwell 2005.

Shapes: N sentence pairs, D statistics of a sentence, R resamples.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from statistics import fmean
from typing import TypeVar

import numpy as np

from seq2seq_attn.metrics.bleu import CorpusStatistics, FloatArray
from seq2seq_attn.metrics.by_length import MIN_PAIRS
from seq2seq_attn.metrics.seeds import seeds_and_sentences
from seq2seq_attn.metrics.table import METRICS

_ROUNDING = 1e-9  # Sums of the same numbers in another order differ by about 1e-15.
SIGNIFICANT_P = 0.05
CHUNK_CELLS = 1 << 22
"""the most cells of a table [resamples, sentence pairs], so that memory does not grow with the
corpus"""


@dataclass(frozen=True)
class Resampling:
    """Options of resampling, with sacreBLEU's defaults."""

    num_resamples: int = 1_000
    """number of resamples of the bootstrap"""
    num_trials: int = 10_000
    """number of trials of the randomization test"""
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
class PairedTest:
    """The difference in score between a system and the baseline, and its two-sided p-value."""

    test: str
    """`bootstrap`, `bootstrap and seeds` if an arm has several seeds, or `randomization`"""
    difference: float
    """the system's score minus the baseline's score"""
    p_value: float | None
    """None for fewer than `MIN_PAIRS` sentence pairs, for which p would be far too small"""
    num_samples: int
    seed: int
    p_corrected: float | None = field(kw_only=True)
    """p with Holm's correction over all arms that are compared with the baseline (`holm`)"""


@dataclass(frozen=True)
class BootstrapTest(PairedTest):
    """The paired bootstrap, which also gives the 95 % interval of the difference.

    If an arm has several seeds, p and the interval cover seeds and sentences (`seeds.py`).
    """

    low: float
    high: float

    @property
    def is_significant(self) -> bool:
        """Tell whether the corrected p is below `SIGNIFICANT_P` and the interval excludes 0."""
        if self.p_corrected is None or self.p_corrected >= SIGNIFICANT_P:
            return False
        return self.low > 0 or self.high < 0


TestT = TypeVar("TestT", bound=PairedTest)


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
    """Score each run on the same R resamples of the sentence pairs.

    Each run is an arm by itself; `pool` joins runs into arms.
    """
    num_pairs = _common_length(runs)
    rng = np.random.default_rng(resampling.seed)
    scores_by_run: list[list[FloatArray]] = [[] for _ in runs]
    for size in _chunks(num_pairs, resampling.num_resamples):
        drawn_RN = rng.choice(num_pairs, size=(size, num_pairs), replace=True)
        cells = (drawn_RN + num_pairs * np.arange(size)[:, None]).ravel()
        counts = np.bincount(cells, minlength=size * num_pairs)
        counts_RN = counts.reshape(size, num_pairs).astype(np.float64)
        for run, scores in zip(runs, scores_by_run, strict=True):
            # sacreBLEU scores resamples in float32, which is exact for counts up to 2^24.
            sums_RD = (counts_RN @ run.rows_ND.astype(np.float64)).astype(np.float32)
            scores.append(run.score_sums(sums_RD))
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
    """Return the interval that leaves out a fortieth of the samples on each side.

    sacreBLEU takes the same order statistics.
    """
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
    1) / (number of resamples + 1), which is 1 if the arms have equal scores. If an arm has several
    seeds, p and the interval are those of `seeds_and_sentences` instead.
    """
    difference = _rounded(arm.mean - baseline.mean)
    differences_R = arm.means_R - baseline.means_R
    if len(baseline.runs) == len(arm.runs) == 1:
        test = "bootstrap"
        interval = percentile_interval(difference, differences_R)
        p = _p_value(differences_R - differences_R.mean(), difference)
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


def holm(tests: Sequence[TestT]) -> list[TestT]:
    """Return the tests of several arms against one baseline with corrected p-values.

    The more arms are compared, the more likely one of them differs by chance. Holm 1979, "A simple
    sequentially rejective multiple test procedure", keeps the probability of any such finding below
    the level: with p_1 <= ... <= p_m, the corrected p_k is max_{j <= k} min(1, (m - j + 1) p_j).
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


def paired_randomization(
    baseline: CorpusStatistics,
    system: CorpusStatistics,
    resampling: Resampling = DEFAULT_RESAMPLING,
) -> PairedTest:
    """Compare two systems by paired approximate randomization.

    Each trial swaps the two systems' outputs of each sentence with probability one half. A trial is
    extreme if its absolute difference is at least the systems' absolute difference. p is (number of
    extreme trials + 1) / (number of trials + 1), which is 1 if the systems have equal scores.

    sacreBLEU's `--paired-ar` counts only larger differences as extreme. If two systems differ in a
    few sentences, most trials tie with the systems' difference, and sacreBLEU's p is far too small:
    1 / (trials + 1) instead of 1 for a single sentence.
    """
    num_pairs = _common_length((baseline, system))
    difference = _rounded(system.score().score - baseline.score().score)
    p_value = None
    if num_pairs >= MIN_PAIRS:
        differences_R = _randomized_differences(baseline, system, resampling)
        p_value = _p_value(differences_R, difference)
    return PairedTest(
        "randomization",
        difference,
        p_value,
        resampling.num_trials,
        resampling.seed,
        p_corrected=p_value,
    )


def _randomized_differences(
    baseline: CorpusStatistics, system: CorpusStatistics, resampling: Resampling
) -> FloatArray:
    """Return the difference in each of R trials that swap sentences between two systems, [R]."""
    baseline_D = baseline.rows_ND.sum(axis=0).astype(np.float64)
    system_D = system.rows_ND.sum(axis=0).astype(np.float64)
    gained_ND = (baseline.rows_ND - system.rows_ND).astype(np.float64)
    rng = np.random.default_rng(resampling.seed)
    differences = []
    for size in _chunks(len(baseline), resampling.num_trials):
        keeps_RN = rng.integers(2, size=(size, len(baseline)), dtype=bool)
        mixed_RD = system_D + keeps_RN @ gained_ND  # Counts are exact in float64.
        rest_RD = baseline_D + system_D - mixed_RD
        differences.append(baseline.score_sums(mixed_RD) - system.score_sums(rest_RD))
    return np.concatenate(differences)


def _rounded(difference: float) -> float:
    """Return 0 for a difference so small that rounding explains it."""
    return 0.0 if abs(difference) < _ROUNDING else difference


def _p_value(samples_R: FloatArray, difference: float) -> float:
    """Return the share of samples whose absolute value is at least that of the difference."""
    num_as_large = int(np.sum(np.abs(samples_R) >= abs(difference) - _ROUNDING))
    return (num_as_large + 1) / (len(samples_R) + 1)  # sacreBLEU, like multeval, adds one to both.


def _common_length(systems: Sequence[CorpusStatistics]) -> int:
    """Return the number of sentence pairs, which all systems must share, as well as the metric."""
    forms = {(len(system), system.name) for system in systems}
    if len(forms) != 1:
        raise ValueError(
            "systems of a paired test need the same sentence pairs and the same metric"
        )
    return len(systems[0])


def _chunks(num_pairs: int, num_rows: int) -> Iterator[int]:
    """Yield the numbers of resamples to draw at once, `num_rows` in total.

    Drawing in chunks gives the same numbers as drawing all rows at once.
    """
    # numpy draws 32 booleans from one word of the random stream. So only chunks of a multiple of 32
    # rows give the same numbers.
    chunk = max(32, CHUNK_CELLS // num_pairs // 32 * 32)
    for start in range(0, num_rows, chunk):
        yield min(chunk, num_rows - start)
