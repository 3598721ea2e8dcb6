import pytest
import torch

from seq2seq_attn.search import beam, greedy
from seq2seq_attn.search.base import SearchSource
from tests.search.fake_model import FakeModel, sources
from tests.search.searching import search


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
