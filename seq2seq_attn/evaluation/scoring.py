"""Score the translations of several sets: lengths, buckets that all systems share, and the sets pooled."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeVar

import numpy as np

from seq2seq_attn.evaluation.names import Arm
from seq2seq_attn.evaluation.scores import DEFAULT_RESAMPLING, Resampling, SetScores, score_set
from seq2seq_attn.evaluation.sets import GERMAN_TO_ENGLISH, EvaluationSet, Languages, concatenated_name
from seq2seq_attn.evaluation.translations import LineCounts, SetTranslations
from seq2seq_attn.metrics.attention_stats import AttentionStatistics, join_statistics
from seq2seq_attn.metrics.bleu import IntArray
from seq2seq_attn.metrics.by_length import MULTI30K_EDGES, make_buckets, parse_edges, quantile_edges, token_lengths
from seq2seq_attn.metrics.names import DEFAULT_MEASURES, LengthIn, LengthOf, MeasureName
from seq2seq_attn.text.languages import separates_words
from seq2seq_attn.text.tokenizers.base import CharacterTokenizer
from seq2seq_attn.text.tokenizers.words import split_words, words_name

ItemT = TypeVar("ItemT")
POOLED, POOLED_WITH_OTHERS = "all test sets", "all sets"


@dataclass(frozen=True)
class Settings:
    """How scores are cut by length and resampled, for any number of systems."""

    by_length: str | None = None
    """first lengths of the buckets (`9,12,15`) or `quantiles:N`; None: Multi30k's own, six quantiles for other text"""
    length_of: LengthOf = "source"
    measures: tuple[MeasureName, ...] = ()
    """none: `DEFAULT_MEASURES`, after the metric of the runs' validation"""
    resampling: Resampling = DEFAULT_RESAMPLING
    merge_below: int = 0
    """a bucket of fewer sentence pairs is joined to its smaller neighbor; 0: none is joined, thin buckets are marked"""
    length_in: LengthIn = "tokens"
    """the unit of length; tokens are spaCy's, whatever tokenizes a run"""

    @property
    def unit(self) -> str:
        """The unit of length in words, `source tokens`."""
        return f"{self.length_of} {self.length_in}"


DEFAULT_SETTINGS = Settings()


@dataclass(frozen=True)
class Scored:
    """The scores of several sets, each by itself and pooled, and how their lengths were counted and cut."""

    sets: list[SetScores]
    """each set, then the pooled ones"""
    lengths: list[IntArray]
    """the length of each sentence pair of each of `sets`"""
    length_tokenizer: str
    edges: Mapping[int, tuple[int, ...]]
    """the bucket edges for each number of concatenated pairs"""
    settings: Settings

    def length_values(self) -> dict[str, Any]:
        """How length was counted and cut, for JSON; `edges` are those of the first number of concatenated pairs."""
        return {
            "of": self.settings.length_of,
            "in": self.settings.length_in,
            "tokenizer": self.length_tokenizer,
            "edges": list(next(iter(self.edges.values()))),
            "edges_by_num_concatenated": [
                {"num_concatenated": number, "edges": list(edges)} for number, edges in self.edges.items()
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
    """Score the translations (system -> those of each set; the first system is the baseline), set by set and pooled, in
    the same buckets. Only sets of equally many concatenated pairs are pooled, and share buckets unless `settings` says
    which.

    Args:
        arms: the systems grouped; empty: each is an arm of its own.
        analyses: the attention of each system on each set; empty: not analyzed.

    Raises:
        UsageError: `by_length` is not a list of bucket edges.
        UserError: another number of translations than of references.
    """
    if not separates_words(languages.source if settings.length_of == "source" else languages.target):
        settings = replace(settings, length_in="characters")
    lengths, tokenizer_name = _lengths(sets, settings, languages)
    groups = _same_concatenation(sets)
    edges = {
        number: _choose_edges(settings, _joined(lengths, group), languages, number) for number, group in groups.items()
    }
    scored, all_lengths = [], []
    for indices in [*([index] for index in range(len(sets))), *(group for group in groups.values() if len(group) > 1)]:
        test_set = _merge_sets([sets[index] for index in indices])
        all_lengths.append(_joined(lengths, indices))
        buckets = make_buckets(all_lengths[-1], edges[test_set.num_concatenated], merge_below=settings.merge_below)
        scored.append(
            score_set(
                test_set.name,
                {name: flatten(made[index].lines for index in indices) for name, made in translations.items()},
                test_set.references,
                buckets,
                other_references=test_set.other_references,
                measures=settings.measures or DEFAULT_MEASURES,
                target_language=languages.target,
                resampling=settings.resampling,
                arms=arms,
                num_concatenated=test_set.num_concatenated,
                counts=[sum((made[i].counts for i in indices), LineCounts(0, 0)) for made in translations.values()],
                attention=[join_statistics([sets_of_run[index] for index in indices]) for sets_of_run in analyses],
            )
        )
    return Scored(scored, all_lengths, tokenizer_name, edges, settings)


def flatten(parts: Iterable[Iterable[ItemT]]) -> list[ItemT]:
    """The items of all parts."""
    return [item for part in parts for item in part]


def _lengths(sets: Sequence[EvaluationSet], settings: Settings, languages: Languages) -> tuple[list[IntArray], str]:
    """The lengths of each set's sentences, and the name of the tokenizer that counts them."""
    counts_source = settings.length_of == "source"
    texts = [test_set.source if counts_source else test_set.references for test_set in sets]
    if settings.length_in == "characters":
        return [token_lengths(lines, CharacterTokenizer().tokenize_many) for lines in texts], CharacterTokenizer.name
    language = languages.source if counts_source else languages.target
    return [token_lengths(lines, partial(split_words, language)) for lines in texts], words_name(language)


def _choose_edges(
    settings: Settings, lengths: IntArray, languages: Languages, num_concatenated: int
) -> tuple[int, ...]:
    if settings.by_length is not None:
        edges = parse_edges(settings.by_length)
        return quantile_edges(lengths, edges) if isinstance(edges, int) else edges
    counted = (languages.corpus, languages.source, settings.length_of, settings.length_in, num_concatenated)
    if counted == ("multi30k", "de", "source", "tokens", 1):
        return MULTI30K_EDGES
    return quantile_edges(lengths)


def _same_concatenation(sets: Sequence[EvaluationSet]) -> dict[int, list[int]]:
    """The indices of the sets by their number of concatenated pairs."""
    groups: dict[int, list[int]] = {}
    for index, test_set in enumerate(sets):
        groups.setdefault(test_set.num_concatenated, []).append(index)
    return groups


def _merge_sets(sets: Sequence[EvaluationSet]) -> EvaluationSet:
    if len(sets) == 1:
        return sets[0]
    number = sets[0].num_concatenated
    held_out = {concatenated_name(name, number) for name in ("train", "valid")}
    pooled = POOLED if held_out.isdisjoint(test_set.name for test_set in sets) else POOLED_WITH_OTHERS
    return EvaluationSet(
        concatenated_name(pooled, number),
        flatten(test_set.source for test_set in sets),
        flatten(test_set.references for test_set in sets),
        num_concatenated=number,
    )


def _joined(lengths: Sequence[IntArray], indices: Sequence[int]) -> IntArray:
    return np.concatenate([lengths[index] for index in indices])
