"""Score the translations of several sets: lengths, buckets that all systems share, and the sets
pooled."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeVar

import numpy as np

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
    mean_difference,
    mean_retention,
    paired_randomization,
    percentile_interval,
    pool,
)
from seq2seq_attn.metrics.table import DEFAULT_METRICS, LengthIn, LengthOf
from seq2seq_attn.text.languages import separates_words
from seq2seq_attn.text.normalize import visible
from seq2seq_attn.text.tokenizers.base import CharacterTokenizer
from seq2seq_attn.text.tokenizers.words import split_words, words_name

ItemT = TypeVar("ItemT")
POOLED, POOLED_WITH_OTHERS = "all test sets", "all sets"


@dataclass(frozen=True)
class Settings:
    """How scores are cut by length and resampled, for any number of systems."""

    by_length: str | None = None
    """first lengths of the buckets (`9,12,15`) or `quantiles:N`; None: Multi30k's own, six
    quantiles for other text"""
    length_of: LengthOf = "source"
    metrics: tuple[str, ...] = ()
    """none: `DEFAULT_METRICS`, after the metric of the runs' validation"""
    resampling: Resampling = DEFAULT_RESAMPLING
    merge_below: int = 0
    """a bucket of fewer sentence pairs is joined to its smaller neighbor; 0: none is joined, thin
    buckets are marked"""
    length_in: LengthIn = "tokens"
    """the unit of length; tokens are spaCy's, whatever tokenizes a run"""

    @property
    def unit(self) -> str:
        """The unit of length in words, `source tokens`."""
        return f"{self.length_of} {self.length_in}"


DEFAULT_SETTINGS = Settings()


@dataclass(frozen=True)
class Scored:
    """The scores of several sets, each by itself and pooled, and how their lengths were counted and
    cut."""

    sets: list[SetScores]
    """each set, then the pooled ones"""
    lengths: list[IntArray]
    """the length of each sentence pair of each of `sets`"""
    length_tokenizer: str
    edges: Mapping[int, tuple[int, ...]]
    """the bucket edges for each number of concatenated pairs"""
    settings: Settings
    languages: Languages

    def length_values(self) -> dict[str, Any]:
        """How length was counted and cut, for JSON; `edges` are those of the first number of
        concatenated pairs."""
        return {
            "of": self.settings.length_of,
            "in": self.settings.length_in,
            "tokenizer": self.length_tokenizer,
            "edges": list(next(iter(self.edges.values()))),
            "edges_by_num_concatenated": [
                {"num_concatenated": number, "edges": list(edges)}
                for number, edges in self.edges.items()
            ],
            "merge_below": self.settings.merge_below,
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
    """Score the translations (system -> those of each set; the first system is the baseline), set
    by set and pooled, by the same buckets. Sets of different numbers of concatenated pairs have
    buckets of their own and are not pooled.

    Args:
        arms: the systems grouped; empty: each is an arm of its own.
        analyses: the attention of each system on each set; empty: not analyzed.

    Raises:
        UsageError: `by_length` is not a list of bucket edges.
        UserError: another number of translations than of references.
    """
    if not separates_words(
        languages.source if settings.length_of == "source" else languages.target
    ):
        settings = replace(settings, length_in="characters")
    lengths, tokenizer_name = _lengths(sets, settings, languages)
    groups: dict[int, list[int]] = {}
    for index, test_set in enumerate(sets):
        groups.setdefault(test_set.num_concatenated, []).append(index)
    edges = {
        k: _choose_edges(settings, [lengths[i] for i in group], languages, k)
        for k, group in groups.items()
    }
    scored, all_lengths = [], []
    for indices in [
        *([index] for index in range(len(sets))),
        *(group for group in groups.values() if len(group) > 1),
    ]:
        test_set = _merge_sets([sets[index] for index in indices])
        all_lengths.append(np.concatenate([lengths[index] for index in indices]))
        buckets = make_buckets(
            all_lengths[-1], edges[test_set.num_concatenated], merge_below=settings.merge_below
        )
        made = {}
        for name, parts in translations.items():
            counts = zip(*(parts[i].counts for i in indices), strict=True)
            made[name] = SetTranslations(
                flatten(parts[i].lines for i in indices), LineCounts(*map(sum, counts))
            )
        attention = [
            join_statistics([run_sets[index] for index in indices]) for run_sets in analyses
        ]
        scored.append(
            _score_set(test_set, made, buckets, settings, languages.target, arms, attention)
        )
    return Scored(scored, all_lengths, tokenizer_name, edges, settings, languages)


def _score_set(
    test_set: EvaluationSet,
    translations: Mapping[str, SetTranslations],
    buckets: Sequence[Bucket],
    settings: Settings,
    target_language: str,
    arms: Sequence[Arm],
    attention: Sequence[AttentionStatistics],
) -> SetScores:
    arms = list(arms) or named_arms(list(translations))
    statistics: dict[str, list[CorpusStatistics]] = {}
    for metric in settings.metrics or DEFAULT_METRICS:
        measure = Measure(
            metric, test_set.references, *test_set.other_references, target_language=target_language
        )
        statistics[metric] = [measure.statistics(made.lines) for made in translations.values()]
    whole = Bucket(0, None, np.arange(len(test_set.references)))
    by_length = {metric: statistics[metric] for metric in metrics_by_length(statistics)}
    resampling = settings.resampling
    return SetScores(
        visible(test_set.name),
        list(translations),
        arms,
        whole=_score_bucket(whole, statistics, attention, arms, resampling),
        buckets=[
            _score_bucket(bucket, by_length, attention, arms, resampling) for bucket in buckets
        ],
        signatures={metric: runs[0].signature for metric, runs in statistics.items()},
        details={metric: [run.details for run in runs] for metric, runs in statistics.items()},
        num_concatenated=test_set.num_concatenated,
        counts=[made.counts for made in translations.values()],
    )


def _score_bucket(
    bucket: Bucket,
    statistics: Mapping[str, Sequence[CorpusStatistics]],
    attention: Sequence[AttentionStatistics],
    arms: Sequence[Arm],
    resampling: Resampling,
) -> BucketScores:
    scores, run_scores = {}, {}
    for metric, set_runs in statistics.items():
        runs = bootstrap([run.subset(bucket.indices) for run in set_runs], resampling)
        scores[metric] = run_scores[metric] = _compare(runs, resampling)
        if len(arms) < len(runs):
            scores[metric] = _compare(
                [pool([runs[run] for run in arm.runs]) for arm in arms], resampling
            )
    return BucketScores(
        bucket, scores, run_scores, [run.subset(bucket.indices).score() for run in attention]
    )


def _compare(arms: Sequence[BootstrapSamples], resampling: Resampling) -> list[ArmScore]:
    """The score of each arm with its spread and interval, and paired tests of all but the first
    against the first."""
    baseline, scores = arms[0], []
    for arm in arms:
        interval = percentile_interval(arm.mean, arm.means_R)
        score = ArmScore(arm.values, interval, is_too_short=baseline.runs[0].is_too_short)
        if arm is not baseline:
            is_pair = len(baseline.runs) == len(arm.runs) == 1
            score = replace(
                score,
                bootstrap=mean_difference(baseline, arm, resampling),
                randomization=paired_randomization(baseline.runs[0], arm.runs[0], resampling)
                if is_pair
                else None,
                retention=mean_retention(baseline, arm),
            )
        scores.append(score)
    return scores


def flatten(parts: Iterable[Iterable[ItemT]]) -> list[ItemT]:
    """The items of all parts."""
    return [item for part in parts for item in part]


def _lengths(
    sets: Sequence[EvaluationSet], settings: Settings, languages: Languages
) -> tuple[list[IntArray], str]:
    """The lengths of each set's sentences, and the name of the tokenizer that counts them."""
    counts_source = settings.length_of == "source"
    language = languages.source if counts_source else languages.target
    split: Callable[[list[str]], list[list[str]]] = partial(split_words, language)
    name = words_name(language)
    if settings.length_in == "characters":
        split, name = CharacterTokenizer().tokenize_many, CharacterTokenizer.name
    texts = [test_set.source if counts_source else test_set.references for test_set in sets]
    return [
        np.array([len(tokens) for tokens in split(lines)], dtype=np.int64) for lines in texts
    ], name


def _choose_edges(
    settings: Settings, set_lengths: Sequence[IntArray], languages: Languages, num_concatenated: int
) -> tuple[int, ...]:
    lengths = np.concatenate(set_lengths)
    if settings.by_length is not None:
        edges = parse_edges(settings.by_length)
        return quantile_edges(lengths, edges) if isinstance(edges, int) else edges
    counted = (
        languages.corpus,
        languages.source,
        settings.length_of,
        settings.length_in,
        num_concatenated,
    )
    return (
        MULTI30K_EDGES
        if counted == ("multi30k", "de", "source", "tokens", 1)
        else quantile_edges(lengths)
    )


def _merge_sets(sets: Sequence[EvaluationSet]) -> EvaluationSet:
    if len(sets) == 1:
        return sets[0]
    number = sets[0].num_concatenated
    held_out = {concatenated_name(name, number) for name in ("train", "valid")}
    pooled = (
        POOLED if held_out.isdisjoint(test_set.name for test_set in sets) else POOLED_WITH_OTHERS
    )
    return EvaluationSet(
        concatenated_name(pooled, number),
        flatten(test_set.source for test_set in sets),
        flatten(test_set.references for test_set in sets),
        num_concatenated=number,
    )
