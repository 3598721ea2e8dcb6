"""How often a comparison of two groups of seeds calls a difference clear, if there is one or not.

The runs differ in their seed alone. A repetition draws two groups of them and a test set of
sentences with replacement, and asks for the verdict of `evaluate`. In a comparison without a
difference, a verdict is an error. For a difference that is real, the second group has the reference
in place of its translation of some sentences.

Six runs can be divided into two groups of three in ten ways only. So each repetition draws new
seeds: a seed has random weights of the trained runs (Dirichlet), and takes each sentence from a run
that is drawn by these weights. The more concentrated the weights, the less seeds differ. One row
has the runs themselves, in their ten ways.
"""

import itertools
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean, stdev

import numpy as np
import numpy.typing as npt

from scripts.laboratory.benchmarks.measure import build_parser, publish
from scripts.laboratory.harness.records import Record
from scripts.laboratory.harness.runs import Run, describe_run, train_all
from seq2seq_attn import load
from seq2seq_attn.metrics.bleu import CorpusStatistics, Measure
from seq2seq_attn.metrics.significance import (
    BootstrapSamples,
    bootstrap,
    mean_difference,
    pool,
)
from seq2seq_attn.report.conclusion import VISIBLE
from seq2seq_attn.run import Run as TrainedRun

FOLDER = Path("runs/lab/null-comparison")
CONFIGS = ("demo",)
SETTINGS = {"train.max_updates": 1_000}
NUM_SEEDS = 6
GROUP = 3
NUM_REPETITIONS = 200
IMPROVED_SHARES = (0.0, 0.04, 0.08)
"""shares of sentences in which the second group has the reference instead of its translation"""
CONCENTRATIONS = (1.0, 10.0)
"""parameters of the Dirichlet distribution of a seed's weights"""
SPLIT = "test"


def main(arguments: Sequence[str]) -> None:
    options = build_parser("null-comparison", __doc__).parse_args(arguments)
    planned = []
    for seed in range(1, NUM_SEEDS + 1):
        planned.append(Run(FOLDER / f"s{seed}", CONFIGS, SETTINGS, seed))
    train_all(planned, jobs=2)
    runs = [run.path for run in planned]
    text = TrainedRun(runs[0]).read_set(SPLIT)
    measure = Measure("bleu", text.references)
    perfect = measure.statistics(text.references)
    scored = []
    for run in runs:
        translations = load(run, "cpu").translate(text.source, keep_attention=False)
        scored.append(measure.statistics([translation.text for translation in translations]))
    num_repetitions = 10 if options.quick else NUM_REPETITIONS
    rows = []
    for concentration, share in itertools.product(CONCENTRATIONS, IMPROVED_SHARES):
        rows.append(measure_rate(scored, perfect, share, num_repetitions, concentration))
    rows.append(measure_rate(scored, perfect, 0.0, num_repetitions))
    bleu = [run.score().score for run in scored]
    about = {
        "runs": [describe_run(run) for run in runs],
        "bleu": bleu,
        "group": GROUP,
        "num_repetitions": num_repetitions,
        "num_pairs": len(text.source),
        "signature": scored[0].signature,
    }
    publish({**about, "rows": rows}, options.record)


def measure_rate(
    scored: Sequence[CorpusStatistics],
    perfect: CorpusStatistics,
    share: float,
    num_repetitions: int,
    concentration: float | None = None,
) -> Record:
    """Measure how often two groups differ clearly, by three tests.

    Args:
        perfect: the statistics of the references as translations.
        share: the share of sentences in which the second group has the reference.
        concentration: that of the weights of new seeds; None: the seeds are the runs.
    """
    rng = np.random.default_rng(1)
    num_pairs = len(perfect)
    gains = []
    deviations = []
    num_clear = 0
    num_by_sentences = 0
    num_multi_bootstrap = 0
    for _ in range(num_repetitions):
        order = rng.permutation(len(scored))[: 2 * GROUP]
        sentences = rng.integers(num_pairs, size=num_pairs)
        is_improved_N = rng.random(num_pairs) < share
        seeds = [scored[index] for index in order]
        if concentration is not None:
            seeds = [mix(scored, concentration, rng) for _ in order]
        drawn = [run.subset(sentences) for run in seeds]
        improved = [improve(run, perfect.subset(sentences), is_improved_N) for run in drawn[GROUP:]]
        samples = bootstrap([*drawn[:GROUP], *improved])
        first, second = pool(samples[:GROUP]), pool(samples[GROUP:])
        test = mean_difference(first, second)
        gains.append(test.difference)
        deviations.append(stdev(first.values))
        num_clear += test.is_significant and abs(test.difference) >= VISIBLE
        num_by_sentences += is_clear_by_sentences(first, second)
        num_multi_bootstrap += is_clear_by_multi_bootstrap(first, second, rng)
    return {
        "concentration": concentration,
        "sd": fmean(deviations),
        "improved_share": share,
        "gain": fmean(gains),
        "clear": num_clear / num_repetitions,
        "by_sentences": num_by_sentences / num_repetitions,
        "multi_bootstrap": num_multi_bootstrap / num_repetitions,
    }


def mix(
    scored: Sequence[CorpusStatistics], concentration: float, rng: np.random.Generator
) -> CorpusStatistics:
    """Return the statistics of a new seed, whose sentences come from runs by random weights."""
    rows_KND = np.stack([run.rows_ND for run in scored])
    weights_K = rng.dirichlet(np.full(len(scored), concentration))
    num_pairs = rows_KND.shape[1]
    chosen_N = rng.choice(np.arange(len(scored)), size=num_pairs, p=weights_K)
    first = scored[0]
    rows_ND = rows_KND[chosen_N, np.arange(num_pairs)]
    return CorpusStatistics(first.name, first.signature, rows_ND, first.metric)


def improve(
    run: CorpusStatistics, perfect: CorpusStatistics, is_improved_N: npt.NDArray[np.bool_]
) -> CorpusStatistics:
    """Return the statistics of a run that has the reference in some sentences."""
    rows_ND = np.where(is_improved_N[:, None], perfect.rows_ND, run.rows_ND)
    return CorpusStatistics(run.name, run.signature, rows_ND, run.metric)


def is_clear_by_sentences(first: BootstrapSamples, second: BootstrapSamples) -> bool:
    """Tell whether the paired bootstrap over sentences alone, centred, has p < 0.05."""
    return _is_clear(second.means_R - first.means_R, second.mean - first.mean)


def is_clear_by_multi_bootstrap(
    first: BootstrapSamples, second: BootstrapSamples, rng: np.random.Generator
) -> bool:
    """Tell whether resampling seeds and sentences together (Sellam et al. 2022) has p < 0.05."""
    means = []
    for arm in (first, second):
        samples_KR = np.stack(arm.samples)
        drawn_KR = rng.integers(len(samples_KR), size=samples_KR.shape)
        means.append(np.take_along_axis(samples_KR, drawn_KR, axis=0).mean(axis=0))
    return _is_clear(means[1] - means[0], second.mean - first.mean)


def _is_clear(differences_R: npt.NDArray[np.float64], difference: float) -> bool:
    """Tell whether centred differences of resamples reach a difference with p < 0.05."""
    p = np.mean(np.abs(differences_R - differences_R.mean()) >= abs(difference))
    return bool(p < 0.05)
