"""From hypotheses to a report: one bucketing for all systems, the scores, the pages, the values for JSON."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import version
from typing import Any, Literal

import numpy as np

from seq2seq_attn.environment import describe_environment
from seq2seq_attn.errors import UsageError
from seq2seq_attn.metrics.bleu import DEFAULT_MEASURES, IntArray, MeasureName
from seq2seq_attn.metrics.by_length import MULTI30K_EDGES, make_buckets, parse_edges, quantile_edges, token_lengths
from seq2seq_attn.report.pages import Page, markdown_page, terminal_page
from seq2seq_attn.report.scores import DEFAULT_RESAMPLING, Resampling, SetScores, score_set

LengthOf = Literal["source", "reference"]
POOLED = "all test sets"
FORMAT_VERSION = 1
"""of report.json"""


@dataclass(frozen=True)
class EvaluationSet:
    """Sentence pairs to score on."""

    name: str
    source: list[str]
    references: list[str]


@dataclass(frozen=True)
class Languages:
    """What the two sides are written in, and the corpus they come from."""

    source: str = "de"
    target: str = "en"
    corpus: str = "files"


GERMAN_TO_ENGLISH = Languages()


@dataclass(frozen=True)
class Settings:
    """How scores are cut and drawn, for any number of systems."""

    by_length: str | None = None
    """first lengths of the buckets (`9,12,15`) or `quantiles:N`; None: Multi30k's own, six quantiles for other text"""
    length_of: LengthOf = "source"
    measures: tuple[MeasureName, ...] = DEFAULT_MEASURES
    resampling: Resampling = DEFAULT_RESAMPLING


@dataclass(frozen=True)
class Report:
    """An evaluation: its scores, the same as values for JSON, and the pages to show."""

    sets: list[SetScores]
    data: dict[str, Any]
    page: Page
    lengths: list[IntArray]
    """the length of each sentence of each set, in the tokens that buckets are cut by"""

    @property
    def text(self) -> str:
        """For the terminal."""
        return terminal_page(self.page)

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
    device: str = "cpu",
) -> Report:
    """Score the hypotheses (system -> lines for each set; the first system is the baseline). Several sets are scored
    apart and pooled, in the same buckets. `descriptions` goes into the values, one for each system.

    Raises:
        UsageError: edges that are none.
        UserError: another number of hypotheses than of references.
    """
    is_of_source = settings.length_of == "source"
    tokenize_many, tokenizer_name = _length_tokenizer(languages.source if is_of_source else languages.target)
    texts = [one.source if is_of_source else one.references for one in sets]
    lengths = [token_lengths(lines, tokenize_many) for lines in texts]
    of_systems = {name: list(of_sets) for name, of_sets in hypotheses.items()}
    sets = list(sets)
    if len(sets) > 1:
        sets.append(EvaluationSet(POOLED, _join(one.source for one in sets), _join(one.references for one in sets)))
        lengths.append(np.concatenate(lengths))
        for of_sets in of_systems.values():
            of_sets.append(_join(of_sets))
    edges = _choose_edges(settings, lengths[-1], languages)
    scored = [
        score_set(
            one.name,
            {name: of_sets[position] for name, of_sets in of_systems.items()},
            one.references,
            make_buckets(lengths[position], edges),
            measures=settings.measures,
            target_language=spacy_language(languages.target),
            resampling=settings.resampling,
        )
        for position, one in enumerate(sets)
    ]
    environment = describe_environment(sys.argv, device)
    data = {
        "format": FORMAT_VERSION,
        "runs": list(descriptions),
        "length": {"of": settings.length_of, "tokenizer": tokenizer_name, "edges": list(edges)},
        "resampling": asdict(settings.resampling),
        "sets": [scores.to_dict() for scores in scored],
        "environment": environment,
    }
    page = Page(
        sets=scored,
        unit=f"{settings.length_of} tokens",
        length_tokenizer=tokenizer_name,
        resampling=settings.resampling,
        notes=[line for description in descriptions for line in _run_lines(description)],
        provenance=_provenance(environment),
    )
    return Report(scored, data, page, lengths)


def spacy_language(language: str) -> str:
    """The language itself if `spacy.blank` has a tokeniser for it, else `xx`, spaCy's for any language."""
    from seq2seq_attn.text.spacy_tokenizer import SpacyTokenizer

    try:
        SpacyTokenizer(language)
    except UsageError:
        return "xx"
    return language


def _length_tokenizer(language: str) -> tuple[Callable[[list[str]], list[list[str]]], str]:
    from seq2seq_attn.text.spacy_tokenizer import SpacyTokenizer

    code = spacy_language(language)
    return SpacyTokenizer(code).tokenize_many, f"spacy.blank:{code}:{version('spacy')}"


def _choose_edges(settings: Settings, lengths: IntArray, languages: Languages) -> tuple[int, ...]:
    if settings.by_length is not None:
        return parse_edges(settings.by_length, lengths)
    if (languages.corpus, languages.source, settings.length_of) == ("multi30k", "de", "source"):
        return MULTI30K_EDGES
    return quantile_edges(lengths)


def _join(parts: Any) -> list[str]:
    return [line for part in parts for line in part]


def _run_lines(description: Mapping[str, Any]) -> list[str]:
    lines = []
    if search := description.get("search"):
        lines.append(
            f"{description['name']}: beam size {search['beam_size']}, length penalty {search['length_penalty']:g}"
        )
    if description.get("lowercases"):
        lines.append(
            f"{description['name']} lower-cases: every capital counts against its cased scores; "
            "the lower-cased ones are its own"
        )
    return lines


def _provenance(environment: Mapping[str, Any]) -> str:
    git = environment.get("git")
    commit = f", commit {git['commit'][:12]}{' with changes' if git['is_dirty'] else ''}" if git else ""
    packages = environment["packages"]
    return (
        f"seq2seq-attn {environment['seq2seq_attn']}{commit}, sacreBLEU {packages['sacrebleu']}, "
        f"torch {packages['torch']}, {environment['device_name']}, {environment['written_at']}"
    )
