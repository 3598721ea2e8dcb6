"""Score the translations of several sets: lengths, buckets that all systems share, and the sets
pooled."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple, TypeVar

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
POOLED = "all test sets"
POOLED_WITH_OTHERS = "all sets"


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
    language = languages.source if settings.length_of == "source" else languages.target
    if not separates_words(language):
        settings = replace(settings, length_in="characters")
    lengths, tokenizer_name = _count_lengths(sets, language, settings)
    groups: dict[int, list[int]] = {}
    for index, test_set in enumerate(sets):
        groups.setdefault(test_set.num_concatenated, []).append(index)
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
        buckets = make_buckets(
            set_lengths, edges[test_set.num_concatenated], merge_below=settings.merge_below
        )
        outputs = {}
        for name, set_outputs in translations.items():
            outputs[name] = _merge_translations([set_outputs[index] for index in indices])
        attention = [join_statistics([counts[index] for index in indices]) for counts in analyses]
        scored.append(scorer.score_set(test_set, outputs, buckets, attention))
        scored_lengths.append(set_lengths)
    return Scored(scored, scored_lengths, tokenizer_name, edges, settings, languages)


class _Scorer(NamedTuple):
    """What the scores of all sets have in common."""

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
        """Score the translations of one set by each system, as a whole and by length."""
        statistics: dict[str, list[CorpusStatistics]] = {}
        for metric in self.settings.metrics or DEFAULT_METRICS:
            measure = Measure(
                metric,
                test_set.references,
                *test_set.other_references,
                target_language=self.target_language,
            )
            statistics[metric] = [measure.statistics(output.lines) for output in outputs.values()]
        whole = Bucket(0, None, np.arange(len(test_set.references)))
        by_length = {metric: statistics[metric] for metric in metrics_by_length(statistics)}
        return SetScores(
            visible(test_set.name),
            list(outputs),
            self.arms,
            whole=self.score_bucket(whole, statistics, attention),
            buckets=[self.score_bucket(bucket, by_length, attention) for bucket in buckets],
            signatures={metric: runs[0].signature for metric, runs in statistics.items()},
            details={metric: [run.details for run in runs] for metric, runs in statistics.items()},
            unit=self.settings.unit,
            num_concatenated=test_set.num_concatenated,
            counts=[output.counts for output in outputs.values()],
        )

    def score_bucket(
        self,
        bucket: Bucket,
        statistics: Mapping[str, Sequence[CorpusStatistics]],
        attention: Sequence[AttentionStatistics],
    ) -> BucketScores:
        """Score each run and each arm on the sentence pairs of a bucket."""
        resampling = self.settings.resampling
        scores = {}
        run_scores = {}
        for metric, run_statistics in statistics.items():
            subsets = [run.subset(bucket.indices) for run in run_statistics]
            runs = bootstrap(subsets, resampling)
            run_scores[metric] = score_arms(runs, resampling)
            scores[metric] = run_scores[metric]
            if len(self.arms) < len(runs):
                pooled = [pool([runs[run] for run in arm.runs]) for arm in self.arms]
                scores[metric] = score_arms(pooled, resampling)
        analyzed = [run.subset(bucket.indices).score() for run in attention]
        return BucketScores(bucket, scores, run_scores, analyzed)


def score_arms(arms: Sequence[BootstrapSamples], resampling: Resampling) -> list[ArmScore]:
    """The score of each arm with its spread and interval; for all arms but the first also the
    paired tests against the first."""
    baseline = arms[0]
    scores = []
    for arm in arms:
        interval = percentile_interval(arm.mean, arm.means_R)
        score = ArmScore(arm.values, interval, is_too_short=baseline.runs[0].is_too_short)
        if arm is not baseline:
            randomization = None
            if len(baseline.runs) == len(arm.runs) == 1:
                randomization = paired_randomization(baseline.runs[0], arm.runs[0], resampling)
            score = replace(
                score,
                bootstrap=mean_difference(baseline, arm, resampling),
                randomization=randomization,
                retention=mean_retention(baseline, arm),
            )
        scores.append(score)
    return scores


def flatten(lists: Iterable[Iterable[ItemT]]) -> list[ItemT]:
    """The items of all lists in one list."""
    return [item for items in lists for item in items]


def _count_lengths(
    sets: Sequence[EvaluationSet], language: str, settings: Settings
) -> tuple[list[IntArray], str]:
    """The lengths of each set's sentences, and the name of the tokenizer that counts them."""
    split: Callable[[list[str]], list[list[str]]] = partial(split_words, language)
    name = words_name(language)
    if settings.length_in == "characters":
        split = CharacterTokenizer().tokenize_many
        name = CharacterTokenizer.name
    lengths = []
    for test_set in sets:
        lines = test_set.source if settings.length_of == "source" else test_set.references
        lengths.append(np.array([len(tokens) for tokens in split(lines)], dtype=np.int64))
    return lengths, name


def _choose_edges(
    settings: Settings, lengths: IntArray, languages: Languages, num_concatenated: int
) -> tuple[int, ...]:
    if settings.by_length is not None:
        edges = parse_edges(settings.by_length)
        return quantile_edges(lengths, edges) if isinstance(edges, int) else edges
    is_multi30k = languages.corpus == "multi30k" and languages.source == "de"
    if is_multi30k and settings.unit == "source tokens" and num_concatenated == 1:
        return MULTI30K_EDGES
    return quantile_edges(lengths)


def _merge_translations(sets: Sequence[SetTranslations]) -> SetTranslations:
    """The lines and counts of several sets as one."""
    counts = zip(*(output.counts for output in sets), strict=True)
    lines = flatten(output.lines for output in sets)
    return SetTranslations(lines, LineCounts(*map(sum, counts)))


def _merge_sets(sets: Sequence[EvaluationSet]) -> EvaluationSet:
    if len(sets) == 1:
        return sets[0]
    number = sets[0].num_concatenated
    held_out = {concatenated_name(name, number) for name in ("train", "valid")}
    has_others = any(test_set.name in held_out for test_set in sets)
    return EvaluationSet(
        concatenated_name(POOLED_WITH_OTHERS if has_others else POOLED, number),
        flatten(test_set.source for test_set in sets),
        flatten(test_set.references for test_set in sets),
        num_concatenated=number,
    )
