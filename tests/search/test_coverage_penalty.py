"""The coverage penalty of Wu et al. 2016, equation 14."""

from __future__ import annotations

import math

import numpy as np
import pytest

from seq2seq_attn.config import SearchConfig
from seq2seq_attn.data.batch import collate_source
from seq2seq_attn.text.vocab import EOS
from tests.search.fake_model import FakeModel, Prefix, every_hypothesis, log_prob_of, sources
from tests.search.searching import beam_search
from tests.search.test_rules import UNK, A, B


@pytest.mark.parametrize("length_penalty", [0.0, 1.0])
def test_a_beam_wide_enough_finds_the_best_of_all(length_penalty: float) -> None:
    weight, model = 0.7, FakeModel(num_free=2, seed=2, sharpness=1.0)
    ids, batch = sources(5, 2)
    options = SearchConfig(beam_size=64, length_penalty=length_penalty, coverage_penalty=weight)
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


@pytest.mark.parametrize(("weight", "counted"), [(0.0, 1e-6), (1e-4, 1e-4), (0.25, 0.25)])
def test_a_position_without_attention_costs_much_but_not_everything(weight: float, counted: float) -> None:
    """EOS follows at once; the first of two source positions has the rest of the attention."""

    class Attending(FakeModel):
        def attention(self, source: Prefix, prefix: Prefix) -> np.ndarray:
            return np.array([1.0 - weight, weight], dtype=np.float32)

    model = Attending(scripted={(): {EOS: 1.0}})
    options = SearchConfig(beam_size=1, coverage_penalty=0.5)
    [[best]] = beam_search(model, collate_source([[5]]), options, max_lengths_B=[3])
    assert best.ids == []
    assert best.score == pytest.approx(0.5 * (math.log(1.0 - weight) + math.log(counted)), rel=1e-4)


def test_a_model_without_attention_weights_has_no_coverage_penalty() -> None:
    model, (_, batch) = FakeModel(num_free=4, seed=2, has_weights=False), sources(5, 2)
    options = SearchConfig(beam_size=3, coverage_penalty=0.7)
    found = beam_search(model, batch, options, max_lengths_B=[5] * 5)
    plain = options.model_copy(update={"coverage_penalty": 0.0})
    assert found == beam_search(model, batch, plain, max_lengths_B=[5] * 5)
