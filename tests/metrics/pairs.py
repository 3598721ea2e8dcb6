"""Two systems, or two arms of several runs, compared as reports compare them: short ways for the tests."""

from __future__ import annotations

from collections.abc import Sequence

from seq2seq_attn.metrics import seeds
from seq2seq_attn.metrics.bleu import CorpusStatistics, Measure, Score
from seq2seq_attn.metrics.names import MeasureName
from seq2seq_attn.metrics.seeds import BootstrapSamples, mean_difference, mean_interval, mean_retention, pool
from seq2seq_attn.metrics.significance import Interval, PairedTest


def score(name: MeasureName, hypotheses: Sequence[str], references: Sequence[str]) -> Score:
    return Measure(name, references).statistics(hypotheses).score()


def interval(system: CorpusStatistics, **draws: int) -> Interval:
    return mean_interval(seeds.bootstrap([system], **draws)[0])


def bootstrap(baseline: CorpusStatistics, system: CorpusStatistics, **draws: int) -> PairedTest:
    return arm_bootstrap([baseline], [system], **draws)


def retention(baseline: CorpusStatistics, system: CorpusStatistics, **draws: int) -> Interval | None:
    return arm_retention([baseline], [system], **draws)


def arm_bootstrap(
    baselines: Sequence[CorpusStatistics], systems: Sequence[CorpusStatistics], **draws: int
) -> PairedTest:
    return mean_difference(*_arms(baselines, systems, draws))


def arm_retention(
    baselines: Sequence[CorpusStatistics], systems: Sequence[CorpusStatistics], **draws: int
) -> Interval | None:
    return mean_retention(*_arms(baselines, systems, draws))


def _arms(
    baselines: Sequence[CorpusStatistics], systems: Sequence[CorpusStatistics], draws: dict[str, int]
) -> tuple[BootstrapSamples, BootstrapSamples]:
    samples = seeds.bootstrap([*baselines, *systems], **draws)
    return pool(samples[: len(baselines)]), pool(samples[len(baselines) :])
