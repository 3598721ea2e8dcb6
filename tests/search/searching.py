"""The methods of `search/` on a batch of ids, without a translator."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from seq2seq_attn.config import SearchConfig
from seq2seq_attn.data.batch import SourceBatch
from seq2seq_attn.search import beam, greedy
from seq2seq_attn.search.base import Hypothesis, SearchSource, StepModel, find_search


def search(
    model: StepModel[Any], batch: SourceBatch, max_lengths_B: Sequence[int], /, **options: Any
) -> list[list[Hypothesis]]:
    """The hypotheses by the method and options named."""
    method, values = find_search(SearchConfig(), options)
    return method(model, SearchSource(batch, max_lengths_B), values)


def beam_search(
    model: StepModel[Any],
    batch: SourceBatch,
    options: SearchConfig,
    *,
    max_lengths_B: Sequence[int],
    prefixes: Sequence[Sequence[int]] = (),
) -> list[list[Hypothesis]]:
    """A beam of any size."""
    source = SearchSource(batch, max_lengths_B, prefixes)
    return beam.search_beams(model, source, options, beam.choose_best)


def greedy_search(
    model: StepModel[Any],
    batch: SourceBatch,
    options: SearchConfig | None = None,
    *,
    max_lengths_B: Sequence[int],
    prefixes: Sequence[Sequence[int]] = (),
) -> list[Hypothesis]:
    """The hypothesis of each sentence."""
    source = SearchSource(batch, max_lengths_B, prefixes)
    return [best for [best] in greedy.search(model, source, options or SearchConfig())]
