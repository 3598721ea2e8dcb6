"""Build a report from hypotheses: buckets that all runs share, scores, pages, values for JSON."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from seq2seq_attn.evaluation.arms import Arm
from seq2seq_attn.evaluation.attention_scores import AttentionAnalysis, pool_analyses, score_attentions
from seq2seq_attn.evaluation.scores import DEFAULT_RESAMPLING, Resampling, SetScores, score_set
from seq2seq_attn.evaluation.sets import (
    GERMAN_TO_ENGLISH,
    EvaluationSet,
    Languages,
    LengthIn,
    LengthOf,
    concatenated_name,
)
from seq2seq_attn.evaluation.texts import LineCounts
from seq2seq_attn.metrics.bleu import DEFAULT_MEASURES, IntArray, MeasureName
from seq2seq_attn.metrics.by_length import (
    MULTI30K_EDGES,
    Bucket,
    make_buckets,
    parse_edges,
    quantile_edges,
    token_lengths,
)
from seq2seq_attn.report.conclusion import conclude
from seq2seq_attn.report.exports import csv_text
from seq2seq_attn.report.notes import caution_lines, provenance, search_lines, too_short_lines
from seq2seq_attn.report.pages import Page, drawn_sets, latex_page, markdown_page, terminal_page, terminal_summary
from seq2seq_attn.runtime.environment import describe_environment
from seq2seq_attn.text.tokenizers.characters import CharacterTokenizer
from seq2seq_attn.text.tokenizers.words import spacy_language, word_tokenizer

if TYPE_CHECKING:
    from seq2seq_attn.text.tokenizers.spacy import SpacyTokenizer

ItemT = TypeVar("ItemT")
POOLED, POOLED_WITH_OTHERS = "all test sets", "all sets"
FORMAT_VERSION = 1
"""of report.json"""


@dataclass(frozen=True)
class Settings:
    """How scores are cut by length and resampled, for any number of runs."""

    by_length: str | None = None
    """first lengths of the buckets (`9,12,15`) or `quantiles:N`; None: Multi30k's own, six quantiles for other text"""
    length_of: LengthOf = "source"
    measures: tuple[MeasureName, ...] = DEFAULT_MEASURES
    resampling: Resampling = DEFAULT_RESAMPLING
    merge_below: int = 0
    """a bucket of fewer sentence pairs is joined to its smaller neighbor; 0: none is joined, thin buckets are marked"""
    length_in: LengthIn = "tokens"
    """the unit of length; tokens are spaCy's, whatever tokenizes a run"""


@dataclass(frozen=True)
class Report:
    """An evaluation: its scores, the same as values for JSON, and the pages to show."""

    sets: list[SetScores]
    data: dict[str, Any]
    page: Page
    lengths: list[IntArray]
    """the length of each sentence of each set, in the unit that buckets are cut by"""

    @property
    def summary(self) -> str:
        """For the terminal, in short: scores, scores by length, conclusion."""
        return terminal_summary(self.page)

    @property
    def text(self) -> str:
        """For the terminal, in full."""
        return terminal_page(self.page)

    @property
    def csv(self) -> str:
        """A row per score, for spreadsheets and statistics."""
        return csv_text(self.sets)

    @property
    def latex(self) -> str:
        """The tables, for papers."""
        return latex_page(self.page)

    def markdown(self, plots: Sequence[str] = ()) -> str:
        """For a file that lies beside the named plots."""
        return markdown_page(self.page, plots)


DEFAULT_SETTINGS = Settings()


def build_report(
    sets: Sequence[EvaluationSet],
    hypotheses: Mapping[str, Sequence[list[str]]],
    descriptions: Sequence[dict[str, Any]],
    *,
    languages: Languages = GERMAN_TO_ENGLISH,
    settings: Settings = DEFAULT_SETTINGS,
    arms: Sequence[Arm] = (),
    analyses: Sequence[Sequence[AttentionAnalysis]] | None = None,
    counts: Sequence[Sequence[LineCounts]] = (),
    device: str = "cpu",
) -> Report:
    """Score the hypotheses (run -> lines for each set; the first run is the baseline). Several sets are scored
    apart and pooled, in the same buckets; only sets of equally many concatenated pairs are pooled, and share buckets
    unless `settings` says which. `descriptions` goes into the values, one for each run.

    Args:
        arms: the runs grouped; empty: each run is an arm of its own.
        analyses: the attention of each run on each set; None: not analyzed.
        counts: of the translations of each run on each set; empty: no model translated.

    Raises:
        UsageError: `by_length` is not a list of bucket edges.
        UserError: another number of hypotheses than of references.
    """
    lengths, tokenizer_name = _lengths(sets, settings, languages)
    pools = _pools(sets)
    edges_of = _edges_of(sets, pools, lengths, settings, languages)
    evidence = _Evidence(sets, hypotheses, arms, analyses, counts)
    scored, all_lengths = [], []
    for pool in [*((index,) for index in range(len(sets))), *(pool for pool in pools if len(pool) > 1)]:
        all_lengths.append(_pooled(lengths, pool))
        edges = edges_of[sets[pool[0]].num_concatenated]
        buckets = make_buckets(all_lengths[-1], edges, merge_below=settings.merge_below)
        scored.append(evidence.score(pool, buckets, settings, languages))
    environment = describe_environment(sys.argv, device)
    page = _page(scored, settings, tokenizer_name, descriptions, environment)
    data = {
        "format": FORMAT_VERSION,
        "conclusion": page.conclusion,
        "runs": list(descriptions),
        **({"groups": [arm.to_dict(scored[0].runs) for arm in scored[0].arms]} if scored[0].is_grouped else {}),
        "languages": asdict(languages),
        "length": _length_values(settings, tokenizer_name, edges_of),
        "resampling": asdict(settings.resampling),
        "sets": [scores.to_dict() for scores in scored],
        "environment": environment,
    }
    return Report(scored, data, page, all_lengths)


@dataclass(frozen=True)
class _Evidence:
    """Hypotheses, arms, analyses and counts of the runs on each set, as `build_report` takes them."""

    sets: Sequence[EvaluationSet]
    hypotheses: Mapping[str, Sequence[list[str]]]
    arms: Sequence[Arm]
    analyses: Sequence[Sequence[AttentionAnalysis]] | None
    counts: Sequence[Sequence[LineCounts]]

    def score(
        self, pool: Sequence[int], buckets: Sequence[Bucket], settings: Settings, languages: Languages
    ) -> SetScores:
        """The scores on some of the sets, taken together."""
        test_set = _pool([self.sets[index] for index in pool])
        scores = score_set(
            test_set.name,
            {name: join(of_sets[index] for index in pool) for name, of_sets in self.hypotheses.items()},
            test_set.references,
            buckets,
            measures=settings.measures,
            target_language=spacy_language(languages.target),
            resampling=settings.resampling,
            arms=self.arms,
            num_concatenated=test_set.num_concatenated,
        )
        if self.analyses is not None:
            pooled = [pool_analyses([of_run[index] for index in pool]) for of_run in self.analyses]
            scores = replace(scores, attention=score_attentions(pooled, buckets))
        if self.counts:
            joined = [sum((of_run[index] for index in pool), LineCounts(0, 0)) for of_run in self.counts]
            scores = replace(scores, counts=joined)
        return scores


def _edges_of(
    sets: Sequence[EvaluationSet],
    pools: Sequence[Sequence[int]],
    lengths: Sequence[IntArray],
    settings: Settings,
    languages: Languages,
) -> dict[int, tuple[int, ...]]:
    """The bucket edges for each number of concatenated pairs."""
    return {
        num_concatenated: _choose_edges(settings, _pooled(lengths, pool), languages, num_concatenated)
        for num_concatenated, pool in ((sets[pool[0]].num_concatenated, pool) for pool in pools)
    }


def _lengths(sets: Sequence[EvaluationSet], settings: Settings, languages: Languages) -> tuple[list[IntArray], str]:
    """The lengths of each set's sentences in tokens, and the name of the tokenizer."""
    is_of_source = settings.length_of == "source"
    texts = [test_set.source if is_of_source else test_set.references for test_set in sets]
    if settings.length_in == "characters":
        return [token_lengths(lines, CharacterTokenizer().tokenize_many) for lines in texts], CharacterTokenizer.name
    tokenizer, name = _length_tokenizer(languages.source if is_of_source else languages.target)
    return [token_lengths(lines, tokenizer.tokenize_many) for lines in texts], name


def _page(
    scored: Sequence[SetScores],
    settings: Settings,
    tokenizer: str,
    descriptions: Sequence[dict[str, Any]],
    environment: dict[str, Any],
) -> Page:
    unit = f"{settings.length_of} {settings.length_in}"
    return Page(
        sets=scored,
        conclusion=_conclusion(
            drawn_sets(scored), unit, [str(description.get("attention", "")) for description in descriptions]
        ),
        unit=unit,
        length_tokenizer=tokenizer,
        resampling=settings.resampling,
        notes=[line for description in descriptions for line in search_lines(description)],
        cautions=[
            *(line for description in descriptions for line in caution_lines(description)),
            *too_short_lines(scored, unit),
        ],
        provenance=provenance(environment),
    )


def _length_values(settings: Settings, tokenizer: str, edges_of: Mapping[int, Sequence[int]]) -> dict[str, Any]:
    """How length was counted and cut, for JSON; `edges` are those of the first number of concatenated pairs."""
    return {
        "of": settings.length_of,
        "in": settings.length_in,
        "tokenizer": tokenizer,
        "edges": list(next(iter(edges_of.values()))),
        "edges_by_num_concatenated": [
            {"num_concatenated": num_concatenated, "edges": list(edges)} for num_concatenated, edges in edges_of.items()
        ],
        "merge_below": settings.merge_below,
    }


def _length_tokenizer(language: str) -> tuple[SpacyTokenizer, str]:
    return word_tokenizer(language), f"spacy.blank:{spacy_language(language)}:{version('spacy')}"


def _choose_edges(
    settings: Settings, lengths: IntArray, languages: Languages, num_concatenated: int
) -> tuple[int, ...]:
    if settings.by_length is not None:
        return parse_edges(settings.by_length, lengths)
    how = (languages.corpus, languages.source, settings.length_of, settings.length_in, num_concatenated)
    if how == ("multi30k", "de", "source", "tokens", 1):
        return MULTI30K_EDGES
    return quantile_edges(lengths)


def _pools(sets: Sequence[EvaluationSet]) -> list[tuple[int, ...]]:
    """Indices of the sets that are pooled: those of equally many concatenated pairs."""
    pools: dict[int, list[int]] = {}
    for index, test_set in enumerate(sets):
        pools.setdefault(test_set.num_concatenated, []).append(index)
    return [tuple(pool) for pool in pools.values()]


def _pool(sets: Sequence[EvaluationSet]) -> EvaluationSet:
    if len(sets) == 1:
        return sets[0]
    source, references = join(test_set.source for test_set in sets), join(test_set.references for test_set in sets)
    num_concatenated = sets[0].num_concatenated
    others = {concatenated_name(name, num_concatenated) for name in ("train", "valid")}
    return EvaluationSet(
        concatenated_name(
            POOLED if others.isdisjoint(one.name for one in sets) else POOLED_WITH_OTHERS, num_concatenated
        ),
        source,
        references,
        num_concatenated=num_concatenated,
    )


def _pooled(lengths: Sequence[IntArray], pool: Sequence[int]) -> IntArray:
    return np.concatenate([lengths[index] for index in pool])


def join(parts: Iterable[Iterable[ItemT]]) -> list[ItemT]:
    """The items of all parts."""
    return [item for part in parts for item in part]


def _conclusion(drawn: Sequence[SetScores], unit: str, attentions: Sequence[str]) -> str:
    """The conclusions for the fewest and for the most concatenated pairs, if there are several numbers of them."""
    if len(drawn) == 1:
        return conclude(drawn[0], unit=unit, attentions=attentions)
    ordered = sorted(drawn, key=lambda scores: scores.num_concatenated)
    ends = (ordered[0], ordered[-1])
    return " ".join(f"{scores.name}: {conclude(scores, unit=unit, attentions=attentions)}" for scores in ends)
