"""Scorers change what ranks; hypotheses keep the model's log-probability."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pytest
import torch
from torch import Tensor

from seq2seq_attn.config import SearchConfig
from seq2seq_attn.data.batch import SourceBatch
from seq2seq_attn.search.base import Hypothesis, Scorer, SearchSource, find_search
from tests.search.fake_model import FakeModel, every_hypothesis, log_prob_of, sources
from tests.search.test_rules import UNK, A, B


class Model(NamedTuple):
    prefixes_RT: Tensor


class Other(Scorer):
    """log p + weight * log q, for another model q of the target alone. Its state holds the tokens so far."""

    def __init__(self, model: FakeModel, weight: float) -> None:
        self.model, self.weight = model, weight

    def start(self, source: SearchSource, rows_per_sentence: int) -> Model:
        return Model(torch.zeros(len(source.max_lengths_B) * rows_per_sentence, 0, dtype=torch.int64))

    def rescore(self, scores_RV: Tensor, tokens_RT: Tensor, state: Model) -> tuple[Tensor, Model]:
        assert torch.equal(state.prefixes_RT, tokens_RT[:, : state.prefixes_RT.shape[1]])  # moved with the beam
        rows = [self.model.next_log_probs((), tuple(row)) for row in tokens_RT.tolist()]
        return scores_RV + self.weight * torch.from_numpy(np.stack(rows)), Model(tokens_RT)


MODEL = FakeModel(num_free=2, seed=2, sharpness=1.0, eos_bonus=0.5)
LANGUAGE = FakeModel(num_free=2, seed=11, sharpness=2.0)


def search(batch: SourceBatch, limits: list[int], *scorers: Scorer, **options: Any) -> list[list[Hypothesis]]:
    method, values = find_search(SearchConfig(), options)
    return method(MODEL, SearchSource(batch, limits, scorers=scorers), values)


def total(source: list[int], ids: list[int], *weights: float) -> float:
    added = (weight * log_prob_of(LANGUAGE, [], ids, is_finished=True) for weight in weights)
    return log_prob_of(MODEL, source, ids, is_finished=True) + sum(added)


@pytest.mark.parametrize("weights", [(0.8,), (0.3, 0.5)])
@pytest.mark.parametrize("method", ["beam", "diverse", "required"])
def test_a_beam_wide_enough_finds_the_highest_total(weights: tuple[float, ...], method: str) -> None:
    ids, batch = sources(5, 2)
    stack = [Other(LANGUAGE, weight) for weight in weights]
    own = {"num_groups": 1} if method == "diverse" else {}
    found = search(batch, [4] * 5, *stack, method=method, beam_size=64, length_penalty=0.5, **own)
    changed = 0
    for source, [best] in zip(ids, found, strict=True):
        candidates = every_hypothesis([UNK, A, B], 4)
        scores = {tuple(c): total(source, c, *weights) / (len(c) + 1) ** 0.5 for c in candidates}
        assert tuple(best.ids) == max(scores, key=lambda ids: scores[ids])
        assert best.score == pytest.approx(max(scores.values()), rel=1e-4)
        assert best.log_prob == pytest.approx(log_prob_of(MODEL, source, best.ids, is_finished=True), rel=1e-4)
        changed += tuple(best.ids) != max(scores, key=lambda ids: total(source, list(ids)) / (len(ids) + 1) ** 0.5)
    assert changed > 0


@pytest.mark.parametrize("method", ["beam", "greedy", "sample", "diverse"])
def test_a_scorer_without_weight_changes_nothing(method: str) -> None:
    _, batch = sources(6, 4)
    options = {"method": method, "beam_size": 3}
    plain, scored = search(batch, [8] * 6, **options), search(batch, [8] * 6, Other(LANGUAGE, 0.0), **options)
    assert [[h.ids for h in best] for best in plain] == [[h.ids for h in best] for best in scored]
    for best, other in zip(plain, scored, strict=True):
        assert [h.log_prob for h in best] == pytest.approx([h.log_prob for h in other])
        assert [h.score for h in best] == pytest.approx([h.score for h in other])


@pytest.mark.parametrize("method", ["greedy", "sample"])
def test_greedy_search_and_samples_follow_the_scores(method: str) -> None:
    """A scorer that leaves one token."""

    class Only(Scorer):
        def rescore(self, scores_RV: Tensor, tokens_RT: Tensor, state: None) -> tuple[Tensor, None]:
            excluded = torch.full_like(scores_RV, -torch.inf)
            excluded[:, A] = -1.0
            return excluded, None

    ids, batch = sources(4, 4)
    for source, [best] in zip(ids, search(batch, [3] * 4, Only(), method=method), strict=True):
        assert (best.ids, best.score) == ([A, A, A], -3.0)
        assert best.log_prob == pytest.approx(log_prob_of(MODEL, source, [A] * 3, is_finished=False), rel=1e-5)
