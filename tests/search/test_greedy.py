import numpy as np
import pytest
import torch

from seq2seq_attn.search import beam, greedy
from seq2seq_attn.search.base import SearchSource
from seq2seq_attn.text.vocab import BOS, EOS, PAD, UNK
from tests.search.fake_model import FakeModel, sources
from tests.search.searching import search


def by_hand(model, source, max_length, forbidden):
    ids = []
    while len(ids) < max_length:
        log_probs = model.next_log_probs(tuple(source), tuple(ids))
        log_probs[[*forbidden]] = -np.inf
        token = int(log_probs.argmax())
        if token == EOS:
            return ids, True
        ids.append(token)
    return ids, False


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize(
    ("unk", "forbidden"),
    [
        ("keep", (PAD, BOS)),
        ("forbid", (PAD, BOS, UNK)),
    ],
)
def test_greedy_is_the_loop_over_argmax(seed, unk, forbidden):
    model = FakeModel(num_free=3, seed=seed)
    ids, batch = sources(9, seed)
    limits = [1 + (i * 5) % 11 for i in range(9)]
    found = search(
        model,
        batch,
        limits,
        method="greedy",
        unk=unk,
        length_penalty=0.5,
    )
    for source, limit, [hypothesis] in zip(ids, limits, found, strict=True):
        expected, is_finished = by_hand(model, source, limit, forbidden)
        assert (hypothesis.ids, hypothesis.is_finished) == (expected, is_finished)
        assert hypothesis.is_cut == (not is_finished)
        log_prob = model.forced_log_prob(source, hypothesis)
        length = len(expected) + is_finished
        assert hypothesis.log_prob == pytest.approx(log_prob)
        assert hypothesis.score == pytest.approx(log_prob / length**0.5)


@pytest.mark.parametrize("method", [greedy.search, beam.search])
@pytest.mark.parametrize("keeps_weights", [False, True])
def test_weights_can_be_left_out(method, keeps_weights):
    _, batch = sources(1)
    source = SearchSource(batch, [4], keeps_weights=keeps_weights)
    [[best]] = method(FakeModel(), source, beam.Options())
    assert (best.weights_TS is not None) == keeps_weights


def test_no_gradient_is_recorded():
    class Recording(FakeModel):
        def step(self, prev_ids_R, state):
            assert not torch.is_grad_enabled()
            return super().step(prev_ids_R, state)

    search(Recording(), sources(2)[1], [3, 3], method="greedy")
