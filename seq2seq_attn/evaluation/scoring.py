"""Score the translations of several test sets by several systems.

A system is a run or an ensemble that translates. An arm is a group of runs that differ only in
their seed. The sentence pairs of each test set are divided by length into buckets, which are equal
for all systems. Test sets are pooled: the sentence pairs of all sets are also scored as one set.
The runs of an arm are pooled too: the mean of their scores is tested.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, TypeVar

import numpy as np

from seq2seq_attn.evaluation.audit import audit_set, find_copies
from seq2seq_attn.evaluation.names import Arm, named_arms
from seq2seq_attn.evaluation.results import ArmScore, BucketScores, SetScores, metrics_by_length
from seq2seq_attn.evaluation.test_sets import (
    GERMAN_TO_ENGLISH,
    EvaluationSet,
    Languages,
    concatenated_name,
)
from seq2seq_attn.evaluation.translations import LineCounts, SetTranslations
from seq2seq_attn.metrics.attention import AttentionStatistics, join_statistics
from seq2seq_attn.metrics.bleu import CorpusStatistics, IntArray, Measure
from seq2seq_attn.metrics.by_length import (
    MULTI30K_EDGES,
    Bucket,
    make_buckets,
    parse_edges,
    quantile_edges,
)
from seq2seq_attn.metrics.significance import (
    DEFAULT_RESAMPLING,
    BootstrapSamples,
    Resampling,
    bootstrap,
    holm,
    mean_difference,
    mean_retention,
    pool,
)
from seq2seq_attn.metrics.table import DEFAULT_METRICS, LengthIn, LengthOf
from seq2seq_attn.text.languages import separates_words
from seq2seq_attn.text.normalize import normalize, visible
from seq2seq_attn.text.tokenizers.words import split_words, words_name

ItemT = TypeVar("ItemT")
POOLED = "all test sets"
POOLED_WITH_OTHERS = "all sets"
"""name of the pooled set if the validation set is among the sets"""


@dataclass(frozen=True)
class Settings:
    """The metrics, the buckets and the resampling by which all systems are scored."""

    by_length: str | None = None
    """The first length of each bucket except the shortest bucket (`9,12,15`), or `quantiles:N`. By
    default, Multi30k has fixed buckets, and other text has six buckets of about equal size."""
    length_of: LengthOf = "source"
    metrics: tuple[str, ...] = ()
    """The metrics to score by; `DEFAULT_METRICS` if empty. `evaluate` puts the metric of the runs'
    validation first."""
    resampling: Resampling = DEFAULT_RESAMPLING
    length_in: LengthIn = "tokens"
    """The unit of length. spaCy splits text into tokens, whichever tokenizer a run has."""

    @property
    def unit(self) -> str:
        """Return the unit of length as a phrase, for example `source tokens`."""
        return f"{self.length_of} {self.length_in}"


DEFAULT_SETTINGS = Settings()


@dataclass(frozen=True)
class Scored:
    """The scores of each set and of the pooled sets, with the lengths and the edges that decide the
    buckets."""

    sets: list[SetScores]
    """the scores of each set, then of the pooled sets"""
    lengths: list[IntArray]
    """for each element of `sets`, the length of each sentence pair"""
    length_tokenizer: str
    """the name of the tokenizer that counted the lengths"""
    edges: Mapping[int, tuple[int, ...]]
    """the bucket edges by the sets' number of concatenated pairs"""
    settings: Settings
    languages: Languages

    def length_values(self) -> dict[str, Any]:
        """Return how lengths were counted and divided into buckets, as plain values for JSON.

        `edges_by_num_concatenated` has all edges. `edges` are the edges of its first entry, which
        are all edges if no pairs are concatenated.
        """
        by_number = [
            {"num_concatenated": number, "edges": list(edges)}
            for number, edges in self.edges.items()
        ]
        return {
            "of": self.settings.length_of,
            "in": self.settings.length_in,
            "tokenizer": self.length_tokenizer,
            "edges": list(next(iter(self.edges.values()))),
            "edges_by_num_concatenated": by_number,
        }


class _SetInputs(NamedTuple):
    """A test set or pooled set, with all inputs of its scores."""

    test_set: EvaluationSet
    lengths: IntArray
    """the length of each sentence pair"""
    outputs: Mapping[str, SetTranslations]
    """the translations by each system"""
    attention: Sequence[AttentionStatistics]
    """the attention statistics of each system; empty if attention was not analyzed"""


def score_sets(
    sets: Sequence[EvaluationSet],
    translations: Mapping[str, Sequence[SetTranslations]],
    *,
    languages: Languages = GERMAN_TO_ENGLISH,
    settings: Settings = DEFAULT_SETTINGS,
    arms: Sequence[Arm] = (),
    analyses: Sequence[Sequence[AttentionStatistics]] = (),
) -> Scored:
    """Score the translations of each set, and of the pooled sets.

    Sets with the same `num_concatenated` share the edges of the buckets and are pooled.

    Args:
        translations: The translations of each set, by the name of the system. The first system is
            the baseline.
        arms: The systems grouped into arms. By default, each system is an arm.
        analyses: For each system, the attention statistics of each set. By default, there are no
            scores of attention.

    Raises:
        UsageError: `by_length` is not a list of bucket edges.
        UserError: A set has a different number of translations than of references.
    """
    language = languages.source if settings.length_of == "source" else languages.target
    if not separates_words(language):
        settings = replace(settings, length_in="characters")
    inputs = []
    groups: dict[int, list[_SetInputs]] = {}
    for index, test_set in enumerate(sets):
        outputs = {name: set_outputs[index] for name, set_outputs in translations.items()}
        attention = [statistics[index] for statistics in analyses]
        lengths = _count_lengths(test_set, language, settings)
        set_inputs = _SetInputs(test_set, lengths, outputs, attention)
        inputs.append(set_inputs)
        groups.setdefault(test_set.num_concatenated, []).append(set_inputs)
    edges = {}
    for number, group in groups.items():
        group_lengths = np.concatenate([set_inputs.lengths for set_inputs in group])
        edges[number] = _choose_edges(settings, group_lengths, languages, number)
        if len(group) > 1:
            inputs.append(_pool_inputs(group))
    scorer = _Scorer(settings, languages.target, list(arms) or named_arms(list(translations)))
    scores = []
    for set_inputs in inputs:
        set_edges = edges[set_inputs.test_set.num_concatenated]
        scores.append(scorer.score_set(set_inputs, make_buckets(set_inputs.lengths, set_edges)))
    input_lengths = [set_inputs.lengths for set_inputs in inputs]
    tokenizer_name = words_name(language) if settings.length_in == "tokens" else "characters"
    return Scored(scores, input_lengths, tokenizer_name, edges, settings, languages)


def _pool_inputs(inputs: Sequence[_SetInputs]) -> _SetInputs:
    """Concatenate the inputs of several sets that the same systems have translated."""
    outputs = {}
    for name in inputs[0].outputs:
        outputs[name] = _merge_translations([set_inputs.outputs[name] for set_inputs in inputs])
    analyses = zip(*[set_inputs.attention for set_inputs in inputs], strict=True)
    return _SetInputs(
        _merge_sets([set_inputs.test_set for set_inputs in inputs]),
        np.concatenate([set_inputs.lengths for set_inputs in inputs]),
        outputs,
        [join_statistics(statistics) for statistics in analyses],
    )


class _Scorer(NamedTuple):
    """Scores sets under the same settings and arms."""

    settings: Settings
    target_language: str
    arms: list[Arm]

    def score_set(self, inputs: _SetInputs, buckets: Sequence[Bucket]) -> SetScores:
        """Score each system's translations of a set, overall and by length."""
        test_set = inputs.test_set
        outputs = inputs.outputs
        attention = inputs.attention
        statistics = {}
        for metric in self.settings.metrics or DEFAULT_METRICS:
            measure = Measure(
                metric,
                test_set.references,
                *test_set.other_references,
                target_language=self.target_language,
            )
            statistics[metric] = [measure.statistics(output.lines) for output in outputs.values()]
        copies_N = find_copies(test_set)
        whole = Bucket(0, None, np.arange(len(test_set.references)))
        by_length = {metric: statistics[metric] for metric in metrics_by_length(statistics)}
        return SetScores(
            visible(test_set.name),
            list(outputs),
            self.arms,
            whole=self.score_bucket(whole, copies_N, statistics, attention),
            buckets=[
                self.score_bucket(bucket, copies_N, by_length, attention) for bucket in buckets
            ],
            signatures={metric: runs[0].signature for metric, runs in statistics.items()},
            details={metric: [run.details for run in runs] for metric, runs in statistics.items()},
            unit=self.settings.unit,
            num_concatenated=test_set.num_concatenated,
            counts=[output.counts for output in outputs.values()],
            warnings=audit_set(test_set),
        )

    def score_bucket(
        self,
        bucket: Bucket,
        copies_N: IntArray,
        statistics: Mapping[str, Sequence[CorpusStatistics]],
        attention: Sequence[AttentionStatistics],
    ) -> BucketScores:
        """Score each run and each arm on the sentence pairs of a bucket.

        Args:
            copies_N: For each pair of the set, the index of the first copy of the pair.
            statistics: For each metric, the statistics of each run.
            attention: The attention statistics of each run.
        """
        resampling = self.settings.resampling
        bucket_copies_N = copies_N[bucket.indices]
        bucket = replace(bucket, num_distinct=len(np.unique(bucket_copies_N)))
        scores = {}
        run_scores = {}
        for metric, run_statistics in statistics.items():
            subsets = [
                run.subset(bucket.indices).merge_copies(bucket_copies_N) for run in run_statistics
            ]
            samples = bootstrap(subsets, resampling)
            pooled = [pool([samples[index] for index in arm.runs]) for arm in self.arms]
            scores[metric] = score_arms(pooled, resampling)
            run_scores[metric] = score_arms(samples, resampling)
        attention_scores = [run.subset(bucket.indices).score() for run in attention]
        return BucketScores(bucket, scores, run_scores, attention_scores)


def score_arms(arms: Sequence[BootstrapSamples], resampling: Resampling) -> list[ArmScore]:
    """Return the score of each arm with its interval. Each score except the first has a paired test
    against the first arm."""
    baseline, *others = arms
    is_too_short = baseline.runs[0].is_too_short  # equal for all runs: a property of references
    bootstraps = holm([mean_difference(baseline, arm, resampling) for arm in others])
    scores = [ArmScore(baseline.values, baseline.interval, is_too_short=is_too_short)]
    for arm, bootstrap_test in zip(others, bootstraps, strict=True):
        retention = mean_retention(baseline, arm)
        scores.append(ArmScore(arm.values, arm.interval, bootstrap_test, retention, is_too_short))
    return scores


def flatten(lists: Iterable[Iterable[ItemT]]) -> list[ItemT]:
    """Return the items of all lists in one list."""
    return [item for items in lists for item in items]


def _count_lengths(test_set: EvaluationSet, language: str, settings: Settings) -> IntArray:
    """Return the length of each sentence pair of a set."""
    lines = test_set.source if settings.length_of == "source" else test_set.references
    units: Iterable[Sequence[str]] = map(normalize, lines)
    if settings.length_in == "tokens":
        units = split_words(language, lines)
    return np.array(list(map(len, units)), dtype=np.int64)


def _choose_edges(
    settings: Settings, lengths: IntArray, languages: Languages, num_concatenated: int
) -> tuple[int, ...]:
    """Return the first length of each bucket except the shortest bucket."""
    if settings.by_length is not None:
        edges_or_count = parse_edges(settings.by_length)
        if isinstance(edges_or_count, int):
            return quantile_edges(lengths, edges_or_count)
        return edges_or_count
    is_multi30k = languages.corpus == "multi30k" and languages.source == "de"
    if is_multi30k and settings.unit == "source tokens" and num_concatenated == 1:
        return MULTI30K_EDGES
    return quantile_edges(lengths)


def _merge_translations(sets: Sequence[SetTranslations]) -> SetTranslations:
    """Concatenate a system's translations of several sets, and sum the counts."""
    lines = flatten(output.lines for output in sets)
    num_cut = sum(output.counts.num_cut for output in sets)
    num_unknown = sum(output.counts.num_unknown_source_tokens for output in sets)
    return SetTranslations(lines, LineCounts(num_cut, num_unknown))


def _merge_sets(sets: Sequence[EvaluationSet]) -> EvaluationSet:
    """Concatenate several sets of the corpus. These sets have no other references: only a set that
    is read from files has other references, and such a set is evaluated alone."""
    number = sets[0].num_concatenated
    names = [test_set.name for test_set in sets]
    has_valid = concatenated_name("valid", number) in names
    return EvaluationSet(
        concatenated_name(POOLED_WITH_OTHERS if has_valid else POOLED, number),
        flatten(test_set.source for test_set in sets),
        flatten(test_set.references for test_set in sets),
        num_concatenated=number,
    )
