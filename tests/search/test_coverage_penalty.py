"""The coverage penalty of Wu et al. 2016, equation 14."""

from __future__ import annotations

import math

import pytest

from seq2seq_attn.search.beam import beam_search
from seq2seq_attn.search.options import SearchOptions
from tests.search.fake_model import FakeModel, every_hypothesis, log_prob_of, sources
from tests.search.test_rules import UNK, A, B


@pytest.mark.parametrize("length_penalty", [0.0, 1.0])
def test_a_beam_wide_enough_finds_the_best_of_all(length_penalty: float) -> None:
    weight, model = 0.7, FakeModel(num_free=2, seed=2, sharpness=1.0)
    ids, batch = sources(5, 2)
    options = SearchOptions(beam_size=64, length_penalty=length_penalty, coverage_penalty=weight)
    plain = beam_search(model, batch, options.model_copy(update={"coverage_penalty": 0.0}), max_lengths_B=[3] * 5)
    found = beam_search(model, batch, options, max_lengths_B=[3] * 5)
    changed = 0
    for source, (best,), (other,) in zip(ids, found, plain, strict=True):
        scores = {}
        for candidate in every_hypothesis([UNK, A, B], 3):
            steps = [model.attention(tuple(source), tuple(candidate[:t])) for t in range(len(candidate) + 1)]
            penalty = sum(math.log(min(float(total), 1.0)) for total in sum(steps))  # type: ignore[arg-type]
            log_prob = log_prob_of(model, source, candidate, is_finished=True)
            scores[tuple(candidate)] = log_prob / (len(candidate) + 1) ** length_penalty + weight * penalty
        assert tuple(best.ids) == max(scores, key=lambda ids: scores[ids])
        assert best.score == pytest.approx(max(scores.values()), rel=1e-4)
        changed += best.ids != other.ids
    assert changed > 0
