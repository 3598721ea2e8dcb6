import math

import numpy as np
import pytest

from seq2seq_attn.config import SearchConfig
from seq2seq_attn.data.batch import collate_source
from seq2seq_attn.search import beam
from seq2seq_attn.search.base import SearchSource
from seq2seq_attn.text.vocab import EOS
from tests.search.fake_model import FakeModel, sources
from tests.search.searching import A, B, best_of_all, search


@pytest.mark.parametrize("length_penalty", [0.0, 0.6, 1.0, 2.0, -0.5])
@pytest.mark.parametrize(
    ("seed", "max_length"),
    [
        (0, 1),
        (1, 2),
        (0, 3),
        (1, 3),
        (2, 3),
        (2, 4),
    ],
)
def test_a_beam_wide_enough_finds_the_best_of_all(seed, max_length, length_penalty):
    """Four tokens can be chosen (EOS, UNK, A, B): 4 ** T slots hold every hypothesis."""
    model = FakeModel(
        num_free=2,
        seed=seed,
        sharpness=1.0,
    )
    ids, batch = sources(4, seed)
    beam_size = 4**max_length
    sizes = {"beam_size": beam_size, "n_best": min(12, beam_size)}
    found = search(model, batch, [max_length] * 4, length_penalty=length_penalty, **sizes)

    def score(source, candidate):
        return model.log_prob(source, candidate) / (len(candidate) + 1) ** length_penalty

    for source, hypotheses in zip(ids, found, strict=True):
        expected = best_of_all(score, source, max_length)[:12]
        finished = [hypothesis for hypothesis in hypotheses if hypothesis.is_finished]
        assert [hypothesis.ids for hypothesis in finished] == [ids for ids, _ in expected]
        assert finished[0].score == pytest.approx(expected[0][1], rel=1e-5)


@pytest.mark.parametrize("length_penalty", [0.0, 0.6, 1.5])
@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("unk", ["keep", "forbid"])
@pytest.mark.parametrize("seed", range(4))
def test_one_slot_is_greedy_search(seed, ties, unk, length_penalty):
    model = FakeModel(
        num_free=70,
        seed=seed,
        ties=ties,
        eos_bonus=2.0,
    )
    _, batch = sources(8, seed)
    limits = [3, 12, 5, 1, 9, 7, 2, 12]
    options = {"unk": unk, "length_penalty": length_penalty}
    greedy = search(model, batch, limits, method="greedy", **options)
    slots = beam.search_beams(
        model,
        SearchSource(batch, limits),
        SearchConfig(beam_size=1, **options),
        beam.choose_best,
        num_slots=1,
    )
    for [one], [other] in zip(greedy, slots, strict=True):
        assert (one.ids, one.log_prob, one.score) == (other.ids, other.log_prob, other.score)
        assert one.is_finished == other.is_finished
        np.testing.assert_array_equal(one.weights_TS, other.weights_TS)


def plain_beam(model, source, beam_size, n_best, length_penalty, limit):
    """One sentence, plain Python, no early stopping: slots of finished hypotheses stay taken."""
    alive = [([], 0.0)]
    finished = []
    for length in range(1, limit + 1):
        candidates = []
        for ids, log_prob in alive:
            log_probs = model.next_log_probs(tuple(source), tuple(ids)).tolist()
            for token in range(EOS, len(log_probs)):
                candidates.append(([*ids, token], log_prob + log_probs[token]))
        candidates.sort(key=lambda candidate: -candidate[1])
        alive = []
        for ids, log_prob in candidates[: beam_size - len(finished)]:
            if ids[-1] == EOS:
                finished.append((ids[:-1], log_prob, log_prob / length**length_penalty))
            else:
                alive.append((ids, log_prob))
    finished.sort(key=lambda hypothesis: -hypothesis[2])
    best = [(ids, log_prob) for ids, log_prob, _ in finished]
    return (best + alive)[:n_best]


@pytest.mark.parametrize("length_penalty", [0.0, 0.7, 1.5, -0.5])
@pytest.mark.parametrize(
    ("beam_size", "n_best"),
    [
        (1, 1),
        (2, 1),
        (4, 1),
        (4, 4),
        (5, 2),
    ],
)
@pytest.mark.parametrize("seed", range(6))
def test_stopping_early_and_batching_change_nothing(seed, beam_size, n_best, length_penalty):
    model = FakeModel(
        num_free=6,
        seed=seed,
        eos_bonus=1.0,
    )
    ids, batch = sources(6, seed)
    limits = [10, 3, 7, 1, 12, 5]
    options = {
        "beam_size": beam_size,
        "n_best": n_best,
        "length_penalty": length_penalty,
    }
    found = search(model, batch, limits, **options)
    for source, limit, hypotheses in zip(ids, limits, found, strict=True):
        expected = plain_beam(model, source, beam_size, n_best, length_penalty, limit)
        log_probs = [log_prob for _, log_prob in expected]
        assert [hypothesis.ids for hypothesis in hypotheses] == [ids for ids, _ in expected]
        assert [hypothesis.log_prob for hypothesis in hypotheses] == pytest.approx(log_probs)


@pytest.mark.parametrize(
    "options",
    [
        {"method": "greedy"},
        {"beam_size": 4, "n_best": 4},
    ],
)
def test_weights_and_scores_are_those_of_the_hypothesis_in_any_batch(options):
    model = FakeModel(
        num_free=5,
        seed=6,
        eos_bonus=1.0,
    )
    ids, batch = sources(9, 6)
    found = search(model, batch, [8] * 9, length_penalty=0.8, **options)
    for source, hypotheses in zip(ids, found, strict=True):
        [alone] = search(model, collate_source([source]), [8], length_penalty=0.8, **options)
        assert [(h.ids, h.log_prob) for h in alone] == [(h.ids, h.log_prob) for h in hypotheses]
        scores = [hypothesis.score for hypothesis in hypotheses if hypothesis.is_finished]
        assert scores == sorted(scores, reverse=True)
        for hypothesis in hypotheses:
            length = len(hypothesis.ids) + hypothesis.is_finished
            log_prob = model.forced_log_prob(source, hypothesis)
            assert hypothesis.log_prob == pytest.approx(log_prob, rel=1e-6)
            assert hypothesis.score == pytest.approx(log_prob / length**0.8, rel=1e-6)
            assert hypothesis.weights_TS.dtype == np.float32
            expected = model.weights_of_steps(source, hypothesis.ids, length)
            np.testing.assert_array_equal(hypothesis.weights_TS, expected)


def test_a_finished_hypothesis_goes_before_a_cut_one_that_scores_more():
    """It is cut too: without the limit, it would not be the first."""
    model = FakeModel(scripted={(): {A: 0.9, EOS: 0.1}, (A,): {A: 0.99, B: 0.01}})
    [hypotheses] = search(model, collate_source([[5]]), [2], beam_size=2, n_best=2)
    assert [(h.ids, h.is_finished, h.is_cut) for h in hypotheses] == [
        ([], True, True),
        ([A, A], False, True),
    ]


@pytest.mark.parametrize("length_penalty", [0.0, 1.0])
def test_where_the_limit_decides_nothing_no_hypothesis_is_cut(length_penalty):
    model = FakeModel(
        scripted={
            (): {A: 0.9, EOS: 0.1},
            (A,): {EOS: 0.9, B: 0.1},
            (A, B): {B: 1.0},
        }
    )
    options = {
        "beam_size": 2,
        "n_best": 2,
        "length_penalty": length_penalty,
    }
    [hypotheses] = search(model, collate_source([[5]]), [3], **options)
    assert [(h.ids, h.is_cut) for h in hypotheses] == [([A], False), ([], False)]


@pytest.mark.parametrize(
    ("length_penalty", "ids", "num_steps"),
    [
        (0.0, [], 1),
        (1.0, [A, A], 3),
    ],
)
def test_a_sentence_stops_when_nothing_alive_can_win(length_penalty, ids, num_steps):
    """EOS at once has 0.6: without a length penalty nothing can beat it; with one, a long
    hypothesis still can."""
    model = FakeModel(
        scripted={
            (): {EOS: 0.6, A: 0.4},
            (A,): {A: 1.0},
            (A, A): {EOS: 1.0},
        }
    )
    source = collate_source([[5]])
    [[best]] = search(model, source, [20], beam_size=2, length_penalty=length_penalty)
    assert best.ids == ids
    assert len(model.steps_of_rows) == num_steps


@pytest.mark.parametrize(
    "options",
    [
        {"method": "greedy"},
        {"beam_size": 3},
    ],
)
def test_finished_sentences_leave_the_batch(options):
    model = FakeModel(
        num_free=5,
        seed=8,
        eos_bonus=1.0,
    )
    ids, batch = sources(12, 8)
    search(model, batch, [15] * 12, **options)
    together = sum(model.steps_of_rows)
    model.steps_of_rows.clear()
    for source in ids:
        search(model, collate_source([source]), [15], **options)
    assert together == sum(model.steps_of_rows)


def test_a_model_that_gives_nan_gives_an_impossible_empty_hypothesis():
    class Broken(FakeModel):
        def next_log_probs(self, source, prefix):
            return np.full(6, np.nan, dtype=np.float32)

    [hypotheses] = search(Broken(), collate_source([[5, 6]]), [5], beam_size=2)
    assert [(h.ids, h.log_prob, h.is_finished) for h in hypotheses] == [([], -np.inf, False)]


# ---- the coverage penalty of Wu et al. 2016, equation 14 ----


@pytest.mark.parametrize("length_penalty", [0.0, 1.0])
def test_a_beam_wide_enough_finds_the_best_covered_of_all(length_penalty):
    model = FakeModel(
        num_free=2,
        seed=2,
        sharpness=1.0,
    )
    ids, batch = sources(5, 2)
    options = {"beam_size": 64, "length_penalty": length_penalty}
    plain = search(model, batch, [3] * 5, **options)
    found = search(model, batch, [3] * 5, coverage_penalty=0.7, **options)

    def score(source, candidate):
        length = len(candidate) + 1
        weights_TS = model.weights_of_steps(source, candidate, length)
        penalty = np.log(weights_TS.sum(axis=0).clip(max=1.0)).sum()
        return model.log_prob(source, candidate) / length**length_penalty + 0.7 * penalty

    for source, [best] in zip(ids, found, strict=True):
        expected, value = best_of_all(score, source, 3)[0]
        assert (best.ids, best.score) == (expected, pytest.approx(value, rel=1e-4))
    assert [best.ids for [best] in found] != [best.ids for [best] in plain]


@pytest.mark.parametrize(
    ("weight", "counted"),
    [
        (0.0, 1e-6),
        (1e-4, 1e-4),
        (0.25, 0.25),
    ],
)
def test_a_position_without_attention_costs_much_but_not_everything(weight, counted):
    """EOS follows at once; the first of two source positions has the rest of the attention."""

    class Attending(FakeModel):
        def attention(self, source, prefix):
            return np.array([1.0 - weight, weight], dtype=np.float32)

    model = Attending(scripted={(): {EOS: 1.0}})
    [[best]] = search(model, collate_source([[5]]), [3], beam_size=1, coverage_penalty=0.5)
    assert best.ids == []
    assert best.score == pytest.approx(0.5 * (math.log(1.0 - weight) + math.log(counted)), rel=1e-4)


def test_a_model_without_attention_weights_has_no_coverage_penalty():
    model = FakeModel(
        num_free=4,
        seed=2,
        has_weights=False,
    )
    _, batch = sources(5, 2)
    plain = search(model, batch, [5] * 5, beam_size=3)
    assert search(model, batch, [5] * 5, beam_size=3, coverage_penalty=0.7) == plain
