"""The methods of `search/` on a batch of ids, without a translator, and every hypothesis as their
oracle."""

import itertools
from collections.abc import Callable, Sequence
from typing import Any

from seq2seq_attn.config import SearchConfig
from seq2seq_attn.data.batch import SourceBatch
from seq2seq_attn.search.base import Hypothesis, Scorer, SearchSource, StepModel, find_search
from seq2seq_attn.text.vocab import UNK

A = UNK + 1
B = UNK + 2


def search(
    model: StepModel[Any],
    batch: SourceBatch,
    limits: Sequence[int],
    *,
    prefixes: Sequence[Sequence[int]] = (),
    scorers: Sequence[Scorer] = (),
    to_ids: Callable[[str], list[int]] = lambda text: [],
    continuing: Sequence[int] = (),
    **options: Any,
) -> list[list[Hypothesis]]:
    """The hypotheses of each sentence, by the method and options named."""
    method, values = find_search(SearchConfig(), options)
    more = {"to_ids": to_ids, "continuing": continuing}
    return method(model, SearchSource(batch, limits, prefixes, scorers, **more), values)


def best_of_all(
    score: Callable[[list[int], list[int]], float], source: list[int], max_length: int
) -> list[tuple[list[int], float]]:
    """Every translation of UNK, A and B that ends by itself within `max_length` tokens, EOS
    included, with its score(source, translation), best first."""
    scored = []
    for length in range(max_length):
        for ids in itertools.product((UNK, A, B), repeat=length):
            scored.append(([*ids], score(source, [*ids])))
    return sorted(scored, key=lambda pair: -pair[1])
