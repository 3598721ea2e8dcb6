from __future__ import annotations

import numpy as np
import pytest

from seq2seq_attn.config import SearchConfig
from seq2seq_attn.data.batch import collate_source
from seq2seq_attn.text.vocab import EOS, UNK
from tests.search.fake_model import FakeModel, every_hypothesis, log_prob_of, sources
from tests.search.searching import beam_search, greedy_search

A, B = UNK + 1, UNK + 2


@pytest.mark.parametrize("length_penalty", [0.0, 0.6, 1.0, 2.0, -0.5])
@pytest.mark.parametrize("max_length", [1, 2, 3, 4])
@pytest.mark.parametrize("seed", range(3))
def test_a_beam_wide_enough_finds_the_best_of_all(seed: int, max_length: int, length_penalty: float) -> None:
    """Four tokens can be chosen (EOS, UNK, A, B): 4 ** T slots hold every hypothesis."""
    model = FakeModel(num_free=2, seed=seed, sharpness=1.0)
    ids, batch = sources(4, seed)
    found = beam_search(
        model,
        batch,
        SearchConfig(beam_size=4**max_length, length_penalty=length_penalty),
        max_lengths_B=[max_length] * 4,
    )
    for source, (best,) in zip(ids, found, strict=True):
        candidates = every_hypothesis([UNK, A, B], max_length)
        scores = [log_prob_of(model, source, c, is_finished=True) / (len(c) + 1) ** length_penalty for c in candidates]
        assert best.is_finished
        assert best.ids == candidates[int(np.argmax(scores))]
        assert best.score == pytest.approx(max(scores), rel=1e-5)


@pytest.mark.parametrize("length_penalty", [0.0, 1.0, -0.5])
def test_n_best_of_a_wide_beam_are_the_n_best_of_all(length_penalty: float) -> None:
    model = FakeModel(num_free=2, seed=11, sharpness=1.0)
    ids, batch = sources(3, 11)
    found = beam_search(
        model, batch, SearchConfig(beam_size=256, n_best=12, length_penalty=length_penalty), max_lengths_B=[4] * 3
    )
    for source, best in zip(ids, found, strict=True):
        candidates = every_hypothesis([UNK, A, B], 4)
        scores = [log_prob_of(model, source, c, is_finished=True) / (len(c) + 1) ** length_penalty for c in candidates]
        order = np.argsort(-np.array(scores), kind="stable")[:12]
        assert [hypothesis.ids for hypothesis in best] == [candidates[i] for i in order]


@pytest.mark.parametrize("length_penalty", [0.0, 0.6, 1.5])
@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("forbid_unk", [False, True])
def test_one_slot_is_greedy_search(ties: bool, forbid_unk: bool, length_penalty: float) -> None:
    for seed in range(4):
        model = FakeModel(num_free=70, seed=seed, ties=ties, eos_bonus=2.0)
        _, batch = sources(8, seed)
        limits = [3, 12, 5, 1, 9, 7, 2, 12]
        unk = "forbid" if forbid_unk else "keep"
        options = SearchConfig(beam_size=1, unk=unk, length_penalty=length_penalty)
        greedy = greedy_search(model, batch, options, max_lengths_B=limits)
        beam = beam_search(model, batch, options, max_lengths_B=limits)
        for one, (other,) in zip(greedy, beam, strict=True):
            assert (one.ids, one.log_prob, one.score) == (other.ids, other.log_prob, other.score)
            assert one.is_finished == other.is_finished
            assert one.weights_TS is not None
            np.testing.assert_array_equal(one.weights_TS, other.weights_TS)


def plain_beam(
    model: FakeModel, source: list[int], beam_size: int, n_best: int, length_penalty: float, limit: int
) -> list[tuple[list[int], float]]:
    """One sentence, plain Python, no early stopping: slots of finished hypotheses stay taken."""
    alive, finished = [([], 0.0)], []
    for length in range(1, limit + 1):
        candidates = []
        for ids, log_prob in alive:
            log_probs = model.next_log_probs(tuple(source), tuple(ids))
            candidates += [([*ids, t], log_prob + float(log_probs[t])) for t in range(EOS, len(log_probs))]
        candidates.sort(key=lambda candidate: -candidate[1])
        alive = []
        for ids, log_prob in candidates[: beam_size - len(finished)]:
            if ids[-1] == EOS:
                finished.append((ids[:-1], log_prob, log_prob / length**length_penalty))
            else:
                alive.append((ids, log_prob))
    finished.sort(key=lambda hypothesis: -hypothesis[2])
    cut = [(ids, log_prob) for ids, log_prob in alive]
    return ([(ids, log_prob) for ids, log_prob, _ in finished] + cut)[:n_best]


@pytest.mark.parametrize("length_penalty", [0.0, 0.7, 1.5, -0.5])
@pytest.mark.parametrize(("beam_size", "n_best"), [(2, 1), (4, 1), (4, 4), (5, 2)])
def test_stopping_early_and_batching_change_nothing(beam_size: int, n_best: int, length_penalty: float) -> None:
    for seed in range(6):
        model = FakeModel(num_free=6, seed=seed, eos_bonus=1.0)
        ids, batch = sources(6, seed)
        limits = [10, 3, 7, 1, 12, 5]
        options = SearchConfig(beam_size=beam_size, n_best=n_best, length_penalty=length_penalty)
        found = beam_search(model, batch, options, max_lengths_B=limits)
        for source, limit, hypotheses in zip(ids, limits, found, strict=True):
            expected = plain_beam(model, source, beam_size, n_best, length_penalty, limit)
            assert [hypothesis.ids for hypothesis in hypotheses] == [e[0] for e in expected]
            assert [hypothesis.log_prob for hypothesis in hypotheses] == pytest.approx([e[1] for e in expected])


def test_a_batch_is_its_sentences_alone() -> None:
    model = FakeModel(num_free=5, seed=5, eos_bonus=1.0)
    ids, batch = sources(9, 5)
    together = beam_search(model, batch, SearchConfig(beam_size=3, n_best=3), max_lengths_B=[8] * 9)
    for source, hypotheses in zip(ids, together, strict=True):
        (alone,) = beam_search(model, collate_source([source]), SearchConfig(beam_size=3, n_best=3), max_lengths_B=[8])
        assert [(h.ids, h.log_prob) for h in alone] == [(h.ids, h.log_prob) for h in hypotheses]


def test_weights_and_scores_follow_each_hypothesis_through_the_beam() -> None:
    model = FakeModel(num_free=5, seed=6, eos_bonus=1.0)
    ids, batch = sources(9, 6)
    found = beam_search(model, batch, SearchConfig(beam_size=4, n_best=4, length_penalty=0.8), max_lengths_B=[8] * 9)
    for source, hypotheses in zip(ids, found, strict=True):
        assert [h.score for h in hypotheses if h.is_finished] == sorted(
            (h.score for h in hypotheses if h.is_finished), reverse=True
        )
        for hypothesis in hypotheses:
            length = len(hypothesis.ids) + hypothesis.is_finished
            log_prob = log_prob_of(model, source, hypothesis.ids, is_finished=hypothesis.is_finished)
            assert hypothesis.log_prob == pytest.approx(log_prob, rel=1e-6)
            assert hypothesis.score == pytest.approx(log_prob / length**0.8, rel=1e-6)
            assert hypothesis.weights_TS is not None
            expected = [model.attention(tuple(source), tuple(hypothesis.ids[:t])) for t in range(length)]
            np.testing.assert_array_equal(hypothesis.weights_TS, np.stack(expected))


def test_a_hypothesis_always_exists() -> None:
    model = FakeModel(num_free=3, seed=7, eos_bonus=-50.0)
    _, batch = sources(3, 7)
    for hypotheses in beam_search(model, batch, SearchConfig(beam_size=3, n_best=2), max_lengths_B=[4, 1, 6]):
        assert [h.is_finished for h in hypotheses] == [False, False]
        assert hypotheses[0].log_prob >= hypotheses[1].log_prob
    found = beam_search(model, batch, SearchConfig(beam_size=3), max_lengths_B=[4, 1, 6])
    assert [len(best.ids) for best, *_ in found] == [4, 1, 6]


def test_a_finished_hypothesis_goes_before_a_cut_one_that_scores_more() -> None:
    model = FakeModel(scripted={(): {A: 0.9, EOS: 0.1}, (A,): {A: 0.99, B: 0.01}})
    (hypotheses,) = beam_search(model, collate_source([[5]]), SearchConfig(beam_size=2, n_best=2), max_lengths_B=[2])
    assert [(h.ids, h.is_finished) for h in hypotheses] == [([], True), ([A, A], False)]
    assert [h.is_cut for h in hypotheses] == [True, True]  # without the limit, the first would not be the first


@pytest.mark.parametrize("length_penalty", [0.0, 1.0])
def test_where_the_limit_decides_nothing_no_hypothesis_is_cut(length_penalty: float) -> None:
    model = FakeModel(scripted={(): {A: 0.9, EOS: 0.1}, (A,): {EOS: 0.9, B: 0.1}, (A, B): {B: 1.0}})
    options = SearchConfig(beam_size=2, n_best=2, length_penalty=length_penalty)
    (hypotheses,) = beam_search(model, collate_source([[5]]), options, max_lengths_B=[3])
    assert [(h.ids, h.is_cut) for h in hypotheses] == [([A], False), ([], False)]


def test_a_sentence_stops_when_nothing_alive_can_win() -> None:
    """EOS at once has 0.6: without a length penalty nothing can beat it; with one, a long hypothesis still can."""
    model = FakeModel(scripted={(): {EOS: 0.6, A: 0.4}, (A,): {A: 1.0}, (A, A): {EOS: 1.0}})
    (plain,) = beam_search(model, collate_source([[5]]), SearchConfig(beam_size=2), max_lengths_B=[20])
    assert (plain[0].ids, len(model.steps_of_rows)) == ([], 1)
    model.steps_of_rows.clear()
    (normalised,) = beam_search(
        model, collate_source([[5]]), SearchConfig(beam_size=2, length_penalty=1.0), max_lengths_B=[20]
    )
    assert (normalised[0].ids, len(model.steps_of_rows)) == ([A, A], 3)


def test_finished_sentences_leave_the_batch() -> None:
    model = FakeModel(num_free=5, seed=8, eos_bonus=1.0)
    ids, batch = sources(12, 8)
    beam_search(model, batch, SearchConfig(beam_size=3), max_lengths_B=[15] * 12)
    together = sum(model.steps_of_rows)
    model.steps_of_rows.clear()
    for source in ids:
        beam_search(model, collate_source([source]), SearchConfig(beam_size=3), max_lengths_B=[15])
    assert together == sum(model.steps_of_rows)


def test_a_model_that_gives_nan_gives_an_impossible_empty_hypothesis() -> None:
    class Broken(FakeModel):
        def next_log_probs(self, source: tuple[int, ...], prefix: tuple[int, ...]) -> np.ndarray:
            return np.full(6, np.nan, dtype=np.float32)

    (hypotheses,) = beam_search(Broken(), collate_source([[5, 6]]), SearchConfig(beam_size=2), max_lengths_B=[5])
    assert [(h.ids, h.log_prob, h.is_finished) for h in hypotheses] == [([], -np.inf, False)]
