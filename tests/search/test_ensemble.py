"""An ensemble against the slow definition: at each token, the log of the members' mean
probability."""

from dataclasses import dataclass, field

import numpy as np
import pytest

from seq2seq_attn.search.steps import Ensemble
from tests.search.fake_model import FakeModel, sources
from tests.search.searching import search


@dataclass
class Mean(FakeModel):
    """The members' mean, computed sentence by sentence; the oracle."""

    members: list[FakeModel] = field(default_factory=list)

    def next_log_probs(self, source, prefix):
        log_probs = [member.next_log_probs(source, prefix) for member in self.members]
        return np.log(np.exp(np.float64(log_probs)).mean(axis=0)).astype(np.float32)

    def attention(self, source, prefix):
        return np.mean([member.attention(source, prefix) for member in self.members], axis=0)


@pytest.mark.parametrize("beam_size", [1, 3])
def test_states_and_attention_follow_the_beam(beam_size):
    """Sentences leave at different steps and hypotheses change slots: each member's state moves
    along."""
    members = [
        FakeModel(
            num_free=5,
            seed=seed,
            sharpness=1.0,
        )
        for seed in (4, 5)
    ]
    ids, batch = sources(9, 4)
    limits = [8, 3, 7, 1, 8, 5, 2, 8, 4]
    found = search(Ensemble(members), batch, limits, beam_size=beam_size, n_best=beam_size)
    mean = Mean(num_free=5, members=members)
    for source, hypotheses in zip(ids, found, strict=True):
        for hypothesis in hypotheses:
            log_prob = mean.forced_log_prob(source, hypothesis)
            assert hypothesis.log_prob == pytest.approx(log_prob, rel=1e-5)
            length = len(hypothesis.ids) + hypothesis.is_finished
            expected = mean.weights_of_steps(source, hypothesis.ids, length)
            np.testing.assert_allclose(hypothesis.weights_TS, expected, atol=1e-6)


def test_the_attention_is_that_of_the_members_that_have_one():
    with_weights = FakeModel(seed=8)
    without = FakeModel(seed=9, has_weights=False)
    [source], batch = sources(1, 8)
    [[best]] = search(Ensemble([without, with_weights]), batch, [3])
    expected = with_weights.attention(tuple(source), ())
    np.testing.assert_allclose(best.weights_TS[0], expected, atol=1e-7)
    [[best]] = search(Ensemble([without, without]), batch, [3])
    assert best.weights_TS is None
