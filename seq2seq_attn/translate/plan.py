"""The plan of a call of a translator: the search, options and terms for all lines of the call."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from seq2seq_attn.config import SearchConfig
from seq2seq_attn.errors import UsageError
from seq2seq_attn.model.variants import SCORER, build_variant
from seq2seq_attn.search.base import Scorer, Search, find_search
from seq2seq_attn.text.glossary import Glossary, read_glossary
from seq2seq_attn.translate.terms import Terms, check_method, prepare_terms

if TYPE_CHECKING:
    from seq2seq_attn.translate.translator import Translator

log = logging.getLogger(__name__)


class Plan(NamedTuple):
    """The search, options, scorers and terms by which all segments of a call are translated."""

    search: Search
    options: SearchConfig
    scorers: Sequence[Scorer]
    keep_attention: bool
    splits_sentences: bool
    warn: Callable[[str], None]
    """receives warnings about the text as a whole"""
    terms: Terms | None = None


def check_source(translator: Translator) -> None:
    """Raise UsageError if the run is a language model, which has no source."""
    if not translator.source_tokenizer.num_columns:
        raise UsageError(
            "the run is a language model, which cannot translate: name a run that translates, and "
            "set search.scorers.fusion.run to this run"
        )


def build_scorers(translator: Translator, search: SearchConfig) -> list[Scorer]:
    """Build the scorers of a search. Raises the errors of `make_plan`."""
    scorers = []
    for name, options in search.scorers.items():
        scorers.append(build_variant(SCORER, name, options, load_steps=translator.load_steps))
    return scorers


def make_plan(
    translator: Translator,
    options: Mapping[str, Any],
    keep_attention: bool,
    glossary: str | Path | Glossary,
    split_sentences: str,
    warn: Callable[[str], None] | None,
) -> Plan:
    """Check the arguments of `Translator.translate_lines`, and return the plan of the call.

    Raises:
        UsageError: an option is unknown, not allowed, or not possible with the model.
        UserError: the glossary or the run of a scorer cannot be read.
    """
    check_source(translator)
    search, values = find_search(translator.search, options)
    if values.unk == "copy" and not (translator.has_attention and translator.model.keeps_positions):
        raise UsageError(
            "unk='copy': this model has no attention weight for each source token to copy by; "
            "use 'keep' or 'forbid'"
        )
    if split_sentences not in ("auto", "off"):
        raise UsageError(f"split_sentences={split_sentences!r}: expected 'auto' or 'off'")
    scorers = build_scorers(translator, values)
    terms = None
    if glossary:
        check_method(search, values)
        entries = glossary if isinstance(glossary, tuple) else read_glossary(glossary)
        terms = prepare_terms(
            entries,
            translator.languages,
            translator.source_tokenizer,
            translator.target_tokenizer,
            translator.target_vocab,
        )
    return Plan(
        search,
        values,
        scorers,
        keep_attention=keep_attention and translator.has_attention,
        splits_sentences=split_sentences == "auto" and translator.line_facts.one_sentence,
        warn=warn or lru_cache(log.warning),
        terms=terms,
    )
