"""Score the translations of several test sets by several systems.

A system is a run or an ensemble that translates. An arm is a group of runs that differ only in
their seed. A set is a test set: source lines with references. Its sentence pairs are divided by
length into buckets, which all systems share. Sets are pooled when all their sentence pairs are
scored as one set; runs are pooled into an arm when their mean is scored.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
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


@dataclass(frozen=True)
class Settings:
    """The metrics, the division into buckets of length, and the resampling, for all systems."""

    by_length: str | None = None
    """The first length of each bucket but the shortest (`9,12,15`), or `quantiles:N`. By default
    Multi30k has fixed buckets, and other text six quantiles."""
    length_of: LengthOf = "source"
    metrics: tuple[str, ...] = ()
    """If empty, `DEFAULT_METRICS`. `evaluate` puts the metric of the runs' validation first."""
    resampling: Resampling = DEFAULT_RESAMPLING
    length_in: LengthIn = "tokens"
    """The unit of length. Tokens are spaCy's, whichever tokenizer a run has."""

    @property
    def unit(self) -> str:
        """Return the unit of length as a phrase, for example `source tokens`."""
        return f"{self.length_of} {self.length_in}"


DEFAULT_SETTINGS = Settings()


@dataclass(frozen=True)
class Scored:
    """The scores of each set and of the pooled sets, with the lengths and edges of the buckets."""

    sets: list[SetScores]
    """the scores of each set, then of the pooled sets"""
    lengths: list[IntArray]
    """for each element of `sets`, the length of each sentence pair"""
    length_tokenizer: str
    edges: Mapping[int, tuple[int, ...]]
    """the bucket edges for each number of concatenated pairs"""
    settings: Settings
    languages: Languages

    def length_values(self) -> dict[str, Any]:
        """Return how lengths were counted and divided into buckets, as plain values for JSON.

        `edges_by_num_concatenated` has all edges. `edges` repeats its first entry.
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


def score_sets(
    sets: Sequence[EvaluationSet],
    translations: Mapping[str, Sequence[SetTranslations]],
    *,
    languages: Languages = GERMAN_TO_ENGLISH,
    settings: Settings = DEFAULT_SETTINGS,
    arms: Sequence[Arm] = (),
    analyses: Sequence[Sequence[AttentionStatistics]] = (),
) -> Scored:
    """Score the translations of each set, and of all sets pooled.

    Sets are pooled, and share the edges of the buckets, if their pairs are concatenated from the
    same number of pairs.

    Args:
        translations: For each system, its translations of each set. The first system is the
            baseline.
        arms: The systems grouped into arms. If empty, each system is an arm.
        analyses: For each system, the attention statistics of each set. If empty, the report has
            no attention statistics.

    Raises:
        UsageError: `by_length` is not a list of bucket edges.
        UserError: A set has a different number of translations than of references.
    """
    language = languages.source if settings.length_of == "source" else languages.target
    if not separates_words(language):
        settings = replace(settings, length_in="characters")
    lengths, tokenizer_name = _count_lengths(sets, language, settings)
    groups = _group_by_concatenation(sets)
    edges = {}
    for number, group in groups.items():
        group_lengths = np.concatenate([lengths[index] for index in group])
        edges[number] = _choose_edges(settings, group_lengths, languages, number)
    scorer = _Scorer(settings, languages.target, list(arms) or named_arms(list(translations)))
    scored = []
    scored_lengths = []
    pooled = [group for group in groups.values() if len(group) > 1]
    for indices in [[index] for index in range(len(sets))] + pooled:
        test_set = _merge_sets([sets[index] for index in indices])
        set_lengths = np.concatenate([lengths[index] for index in indices])
        set_edges = edges[test_set.num_concatenated]
        buckets = make_buckets(set_lengths, set_edges)
        outputs = {}
        for name, set_outputs in translations.items():
            outputs[name] = _merge_translations([set_outputs[index] for index in indices])
        attention = [join_statistics([counts[index] for index in indices]) for counts in analyses]
        scored.append(scorer.score_set(test_set, outputs, buckets, attention))
        scored_lengths.append(set_lengths)
    return Scored(scored, scored_lengths, tokenizer_name, edges, settings, languages)


def _group_by_concatenation(sets: Sequence[EvaluationSet]) -> dict[int, list[int]]:
    """Return the indices of the sets by the number of pairs that each of their pairs joins."""
    groups: dict[int, list[int]] = {}
    for index, test_set in enumerate(sets):
        groups.setdefault(test_set.num_concatenated, []).append(index)
    return groups


class _Scorer(NamedTuple):
    """Scores sets under the same settings and arms."""

    settings: Settings
    target_language: str
    arms: list[Arm]

    def score_set(
        self,
        test_set: EvaluationSet,
        outputs: Mapping[str, SetTranslations],
        buckets: Sequence[Bucket],
        attention: Sequence[AttentionStatistics],
    ) -> SetScores:
        """Score each system's translations of one set, overall and by length."""
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
            copies_N: For each pair of the set, a number that it shares with its copies only.
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
            run_scores[metric] = score_arms(samples, resampling)
            scores[metric] = run_scores[metric]
            if len(self.arms) < len(samples):
                pooled = [pool([samples[index] for index in arm.runs]) for arm in self.arms]
                scores[metric] = score_arms(pooled, resampling)
        attention_scores = [run.subset(bucket.indices).score() for run in attention]
        return BucketScores(bucket, scores, run_scores, attention_scores)


def score_arms(arms: Sequence[BootstrapSamples], resampling: Resampling) -> list[ArmScore]:
    """Return the score of each arm with its interval, and its paired tests against the first arm.

    The first arm has no tests.
    """
    baseline, *others = arms
    first = baseline.runs[0]
    bootstraps = holm([mean_difference(baseline, arm, resampling) for arm in others])
    scores = [ArmScore(baseline.values, baseline.interval, is_too_short=first.is_too_short)]
    for arm, bootstrap_test in zip(others, bootstraps, strict=True):
        score = ArmScore(
            arm.values,
            arm.interval,
            bootstrap_test,
            mean_retention(baseline, arm),
            first.is_too_short,
        )
        scores.append(score)
    return scores


def flatten(lists: Iterable[Iterable[ItemT]]) -> list[ItemT]:
    """Return the items of all lists in one list."""
    return [item for items in lists for item in items]


def _split_characters(lines: Sequence[str]) -> list[list[str]]:
    return [list(normalize(line)) for line in lines]


def _count_lengths(
    sets: Sequence[EvaluationSet], language: str, settings: Settings
) -> tuple[list[IntArray], str]:
    """Return the lengths of each set's sentences, and the name of the tokenizer that counts."""
    split: Callable[[list[str]], list[list[str]]]
    if settings.length_in == "characters":
        split = _split_characters
        name = "characters"
    else:
        split = partial(split_words, language)
        name = words_name(language)
    lengths = []
    for test_set in sets:
        lines = test_set.source if settings.length_of == "source" else test_set.references
        lengths.append(np.array([len(tokens) for tokens in split(lines)], dtype=np.int64))
    return lengths, name


def _choose_edges(
    settings: Settings, lengths: IntArray, languages: Languages, num_concatenated: int
) -> tuple[int, ...]:
    """Return the first length of each bucket but the shortest."""
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
    """Concatenate a system's translations of several sets, and sum their counts."""
    counts = zip(*(output.counts for output in sets), strict=True)
    lines = flatten(output.lines for output in sets)
    return SetTranslations(lines, LineCounts(*map(sum, counts)))


def _merge_sets(sets: Sequence[EvaluationSet]) -> EvaluationSet:
    """Concatenate several sets.

    The result is named `POOLED`, or `POOLED_WITH_OTHERS` if training or validation pairs are among
    the sets.
    """
    if len(sets) == 1:
        return sets[0]
    number = sets[0].num_concatenated
    not_test_names = {concatenated_name(name, number) for name in ("train", "valid")}
    are_test_sets = all(test_set.name not in not_test_names for test_set in sets)
    return EvaluationSet(
        concatenated_name(POOLED if are_test_sets else POOLED_WITH_OTHERS, number),
        flatten(test_set.source for test_set in sets),
        flatten(test_set.references for test_set in sets),
        num_concatenated=number,
    )
