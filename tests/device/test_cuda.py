"""The same function on a GPU: skipped, with the reason, where there is none."""

import pytest
import torch

from seq2seq_attn.config import ModelConfig
from seq2seq_attn.model.attention import variant_names
from seq2seq_attn.model.build import build_model
from seq2seq_attn.model.fast_step import step_model
from seq2seq_attn.search.beam import beam_search
from seq2seq_attn.search.greedy import greedy_search
from seq2seq_attn.train.loss import batch_loss
from tests.toy import FIRST_ID, reverse_batch

pytestmark = [
    pytest.mark.device,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device"),
]
NUM_TYPES = 20
CUDA = torch.device("cuda")


def make(variant):
    torch.manual_seed(0)
    config = ModelConfig(
        embedding_size=32,
        hidden_size=64,
        readout_size=32,
        attention={"name": variant},
        encoder={"hidden_size": 32, "num_layers": 2},
        dropout={"embedding": 0.0, "encoder": 0.0, "readout": 0.0},
    )
    return build_model(config, num_source_ids=FIRST_ID + NUM_TYPES, num_target_ids=FIRST_ID + NUM_TYPES)


def gradients(model, batch):
    model.zero_grad()
    loss = batch_loss(model, batch, label_smoothing=0.1)
    loss.loss_sum.backward()
    return loss.loss_sum.item(), {name: p.grad.cpu() for name, p in model.named_parameters()}


@pytest.mark.parametrize("variant", variant_names())
def test_loss_and_gradients_are_those_of_the_cpu(variant):
    batch = reverse_batch(16, num_types=NUM_TYPES, max_length=9, seed=1)
    model = make(variant).double()
    loss, expected = gradients(model, batch)
    cuda_loss, found = gradients(model.to(CUDA), batch.to(CUDA))
    assert cuda_loss == pytest.approx(loss, rel=1e-10)
    torch.testing.assert_close(found, expected, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision_is_close(dtype):
    batch = reverse_batch(16, num_types=NUM_TYPES, max_length=9, seed=1).to(CUDA)
    model = make("additive").to(CUDA)
    exact, _ = gradients(model, batch)
    with torch.autocast("cuda", dtype=dtype):
        low, found = gradients(model, batch)
    assert low == pytest.approx(exact, rel=2e-2)
    assert all(torch.isfinite(gradient).all() for gradient in found.values())


@pytest.mark.parametrize("variant", variant_names())
def test_searches_find_what_the_cpu_finds(variant):
    source = reverse_batch(16, num_types=NUM_TYPES, max_length=9, seed=2).source
    model = make(variant).double().eval()
    limits = [12] * 16
    with torch.no_grad():
        greedy = [hyp.ids for hyp in greedy_search(model, source, max_lengths_B=limits)]
        beam = [hyps[0].ids for hyps in beam_search(model, source, beam_size=3, max_lengths_B=limits)]
        model.to(CUDA)
        for step in (model, step_model(model)):
            assert [h.ids for h in greedy_search(step, source.to(CUDA), max_lengths_B=limits)] == greedy
            found = beam_search(step, source.to(CUDA), beam_size=3, max_lengths_B=limits)
            assert [hyps[0].ids for hyps in found] == beam
