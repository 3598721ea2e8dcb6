"""Several seeds of one arm: mean and spread, and arms against each other over the same resampled sentences.

An arm's score is the mean of its runs' corpus scores. In each resample every run of both arms is scored on the same
sentence pairs, so an interval covers the choice of test sentences; the `Spread` over seeds is reported beside it. With
one run in each arm these are sacreBLEU's intervals and paired bootstrap of two systems.

Shapes: R resamples.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from statistics import fmean, stdev

import numpy as np

from seq2seq_attn.metrics.bleu import LOWER_IS_BETTER, CorpusStatistics, FloatArray
from seq2seq_attn.metrics.significance import (
    DEFAULT_SEED,
    NUM_RESAMPLES,
    Interval,
    PairedTest,
    bootstrap_scores,
    bootstrap_test,
    percentile_interval,
    ratio_interval,
)


@dataclass(frozen=True)
class Spread:
    """Mean and spread of one value per seed."""

    mean: float
    standard_deviation: float | None
    """of a sample (n - 1); None with one seed"""
    min: float
    max: float
    num_seeds: int


@dataclass(frozen=True, eq=False)
class BootstrapSamples:
    """Scores of runs over resamples of the sentence pairs; runs that are compared share the resamples."""

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
        if len(self.samples) == 1:
            return self.samples[0]
        return np.asarray(np.mean(np.stack(self.samples), axis=0, dtype=np.float64))


def spread(values: Sequence[float]) -> Spread:
    """Mean, standard deviation and extremes of the seeds' values."""
    deviation = stdev(values) if len(values) > 1 else None
    return Spread(fmean(values), deviation, min(values), max(values), len(values))


def bootstrap(
    runs: Sequence[CorpusStatistics], *, num_resamples: int = NUM_RESAMPLES, seed: int = DEFAULT_SEED
) -> list[BootstrapSamples]:
    """Score each run by itself over common resamples; `pool` makes arms of the runs."""
    samples = bootstrap_scores(*runs, num_resamples=num_resamples, seed=seed)
    return [
        BootstrapSamples((run,), (run.score().score,), (samples_R,))
        for run, samples_R in zip(runs, samples, strict=True)
    ]


def pool(parts: Sequence[BootstrapSamples]) -> BootstrapSamples:
    """The runs of one arm together."""
    return BootstrapSamples(
        tuple(run for part in parts for run in part.runs),
        tuple(value for part in parts for value in part.values),
        tuple(samples for part in parts for samples in part.samples),
    )


def mean_interval(arm: BootstrapSamples) -> Interval:
    """The mean of the runs' scores with its 95 % bootstrap interval over sentences."""
    return percentile_interval(arm.mean, arm.means_R)


def mean_difference(baseline: BootstrapSamples, arm: BootstrapSamples, *, seed: int = DEFAULT_SEED) -> PairedTest:
    """The paired bootstrap of the two means; p is 1 where they are equal."""
    return bootstrap_test(arm.mean - baseline.mean, baseline.means_R, arm.means_R, seed=seed)


def mean_retention(baseline: BootstrapSamples, arm: BootstrapSamples) -> Interval | None:
    """The arm's mean score / the baseline's, with its paired interval; None where the baseline scores 0, and for error
    rates, of which less is better."""
    if baseline.runs[0].name in LOWER_IS_BETTER:
        return None
    return ratio_interval(baseline.mean, arm.mean, baseline.means_R, arm.means_R)
