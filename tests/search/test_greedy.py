from __future__ import annotations

import numpy as np
import pytest
import torch

from seq2seq_attn.config import SearchConfig
from seq2seq_attn.data.batch import collate_source
from seq2seq_attn.search import beam, greedy
from seq2seq_attn.search.base import SearchSource
from seq2seq_attn.text.vocab import BOS, EOS, PAD, UNK
from tests.search.fake_model import FakeModel, log_prob_of, sources
from tests.search.searching import greedy_search


def by_hand(model: FakeModel, source: list[int], max_length: int, forbidden: tuple[int, ...]) -> tuple[list[int], bool]:
    ids: list[int] = []
    while len(ids) < max_length:
        log_probs = model.next_log_probs(tuple(source), tuple(ids)).copy()
        log_probs[list(forbidden)] = -np.inf
        token = int(log_probs.argmax())
        if token == EOS:
            return ids, True
        ids.append(token)
    return ids, False


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("forbid_unk", [False, True])
def test_greedy_is_the_loop_over_argmax(seed: int, forbid_unk: bool) -> None:
    model = FakeModel(num_free=3, seed=seed)
    ids, batch = sources(9, seed)
    limits = [1 + (i * 5) % 11 for i in range(9)]
    options = SearchConfig(unk="forbid" if forbid_unk else "keep")
    found = greedy_search(model, batch, options, max_lengths_B=limits)
    forbidden = (PAD, BOS, UNK) if forbid_unk else (PAD, BOS)
    for source, limit, hypothesis in zip(ids, limits, found, strict=True):
        expected, is_finished = by_hand(model, source, limit, forbidden)
        assert (hypothesis.ids, hypothesis.is_finished) == (expected, is_finished)
        assert hypothesis.is_cut == (not is_finished)
        assert hypothesis.log_prob == pytest.approx(log_prob_of(model, source, expected, is_finished=is_finished))
        assert hypothesis.score == hypothesis.log_prob


def test_weights_are_those_of_the_sentence_s_own_steps_and_positions() -> None:
    model = FakeModel(num_free=3, seed=1)
    ids, batch = sources(8, 1)
    for source, hypothesis in zip(ids, greedy_search(model, batch, max_lengths_B=[12] * 8), strict=True):
        assert hypothesis.weights_TS is not None
        assert hypothesis.weights_TS.dtype == np.float32
        num_steps = len(hypothesis.ids) + hypothesis.is_finished
        expected = [model.attention(tuple(source), tuple(hypothesis.ids[:t])) for t in range(num_steps)]
        np.testing.assert_array_equal(hypothesis.weights_TS, np.stack(expected))


def test_finished_sentences_leave_the_batch() -> None:
    model = FakeModel(num_free=3, seed=2)
    _, batch = sources(20, 2)
    found = greedy_search(model, batch, max_lengths_B=[30] * 20)
    steps_needed = sum(len(hypothesis.ids) + hypothesis.is_finished for hypothesis in found)
    assert sum(model.steps_of_rows) == steps_needed


def test_a_batch_is_its_sentences_alone() -> None:
    model = FakeModel(num_free=3, seed=3)
    ids, batch = sources(7, 3)
    together = greedy_search(model, batch, max_lengths_B=[9] * 7)
    for source, hypothesis in zip(ids, together, strict=True):
        alone = greedy_search(model, collate_source([source]), max_lengths_B=[9])[0]
        assert (alone.ids, alone.log_prob) == (hypothesis.ids, hypothesis.log_prob)


def test_the_score_is_normalised_by_length_with_eos() -> None:
    model = FakeModel(num_free=3, seed=4, eos_bonus=1.0)
    _, batch = sources(6, 4)
    for hypothesis in greedy_search(model, batch, SearchConfig(length_penalty=0.5), max_lengths_B=[40] * 6):
        assert hypothesis.is_finished
        assert hypothesis.score == pytest.approx(hypothesis.log_prob / (len(hypothesis.ids) + 1) ** 0.5)


def test_weights_can_be_left_out() -> None:
    _, batch = sources(3)
    assert greedy_search(FakeModel(has_weights=False), batch, max_lengths_B=[4] * 3)[0].weights_TS is None
    for keeps_weights in (False, True):
        source = SearchSource(batch, [4] * 3, keeps_weights=keeps_weights)
        for search in (greedy.search, beam.search):
            [[best], *_] = search(FakeModel(), source, beam.Options())
            assert (best.weights_TS is not None) == keeps_weights


def test_no_gradient_is_recorded() -> None:
    class Recording(FakeModel):
        def step(self, prev_ids_R: torch.Tensor, state):  # type: ignore[no-untyped-def]
            assert not torch.is_grad_enabled()
            return super().step(prev_ids_R, state)

    _, batch = sources(2)
    assert len(greedy_search(Recording(), batch, max_lengths_B=[3, 3])) == 2
