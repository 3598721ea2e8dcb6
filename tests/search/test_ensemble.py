"""An ensemble against the slow definition: at each token, the log of the members' mean
probability."""

from dataclasses import dataclass, field

import numpy as np
import pytest

from seq2seq_attn.search.steps import Ensemble
from tests.search.fake_model import FakeModel, Prefix, sources
from tests.search.searching import search


@dataclass
class Mean(FakeModel):
    """The members' mean, computed sentence by sentence; the oracle."""

    members: list[FakeModel] = field(default_factory=list)

    def next_log_probs(self, source: Prefix, prefix: Prefix) -> np.ndarray:
        probs = [
            np.exp(member.next_log_probs(source, prefix).astype(np.float64))
            for member in self.members
        ]
        return np.log(np.mean(probs, axis=0)).astype(np.float32)

    def attention(self, source: Prefix, prefix: Prefix) -> np.ndarray:
        return np.mean(
            [one.attention(source, prefix) for one in self.members if one.has_weights], axis=0
        )


def fakes(*seeds: int, num_free: int = 2) -> list[FakeModel]:
    return [FakeModel(num_free=num_free, seed=seed, sharpness=1.0) for seed in seeds]


@pytest.mark.parametrize("beam_size", [1, 3])
def test_states_and_attention_follow_the_beam(beam_size):
    """Sentences leave at different steps and hypotheses change slots: each member's state moves
    along."""
    members = fakes(4, 5, num_free=5)
    ids, batch = sources(9, 4)
    mean = Mean(num_free=5, members=members)
    found = search(
        Ensemble(members), batch, [8, 3, 7, 1, 8, 5, 2, 8, 4], beam_size=beam_size, n_best=beam_size
    )
    for source, hypotheses in zip(ids, found, strict=True):
        for one in hypotheses:
            assert one.log_prob == pytest.approx(
                mean.log_prob(source, one.ids, is_finished=one.is_finished), rel=1e-5
            )
            assert one.weights_TS is not None
            steps = range(len(one.ids) + one.is_finished)
            weights_TS = [mean.attention(tuple(source), tuple(one.ids[:t])) for t in steps]
            np.testing.assert_allclose(one.weights_TS, np.stack(weights_TS), atol=1e-6)


def test_the_attention_is_that_of_the_members_that_have_one():
    with_weights = FakeModel(seed=8)
    without = FakeModel(seed=9, has_weights=False)
    ids, batch = sources(3, 8)
    for source, [best] in zip(
        ids, search(Ensemble([without, with_weights]), batch, [3] * 3), strict=True
    ):
        assert best.weights_TS is not None
        np.testing.assert_allclose(
            best.weights_TS[0], with_weights.attention(tuple(source), ()), atol=1e-7
        )
    assert search(Ensemble([without, without]), batch, [3] * 3)[0][0].weights_TS is None
