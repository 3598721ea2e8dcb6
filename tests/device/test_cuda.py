"""The same function on a GPU: skipped, with the reason, where there is none."""

import pytest
import torch

from scripts.laboratory.benchmarks.measure import toy_settings
from scripts.laboratory.golden import FIRST_ID, repeatable_attentions, reverse_batch
from seq2seq_attn.config import ModelConfig, TrainConfig, load_config
from seq2seq_attn.model.build import build_model
from seq2seq_attn.model.variants import packaged_variants
from seq2seq_attn.model.weights import read_tensors
from seq2seq_attn.search.steps import PlainSteps, step_model
from seq2seq_attn.train.batches import UpdateBatches
from seq2seq_attn.train.loop import train
from seq2seq_attn.train.loss import batch_loss
from seq2seq_attn.train.update import Updater
from tests.search.searching import search

pytestmark = [
    pytest.mark.device,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device"),
]
NUM_TYPES = 20
REPEATABLE = repeatable_attentions()
CUDA = torch.device("cuda")


def make(variant, dropout=0.0):
    torch.manual_seed(0)
    config = ModelConfig(
        embedding_size=32,
        hidden_size=64,
        readout_size=32,
        attention={"name": variant},
        encoder={"hidden_size": 32, "num_layers": 2},
        dropout={"embedding": dropout, "encoder": dropout, "readout": dropout},
    )
    return build_model(
        config, num_source_ids=FIRST_ID + NUM_TYPES, num_target_ids=FIRST_ID + NUM_TYPES
    )


def make_batch(seed, max_length=9):
    return reverse_batch(16, num_types=NUM_TYPES, max_length=max_length, seed=seed)


def gradients(model, batch, dtype=None):
    """The loss and the gradients, with copies that stay on the CPU when the model moves."""
    model.zero_grad()
    with torch.autocast("cuda", dtype=dtype, enabled=dtype is not None):
        loss = batch_loss(model, batch, label_smoothing=0.1)
    loss.loss_sum.backward()
    copies = {}
    for name, parameter in model.named_parameters():
        copies[name] = parameter.grad.cpu().clone()
    return loss.loss_sum.item(), copies


@pytest.mark.parametrize("variant", REPEATABLE)
def test_loss_and_gradients_are_those_of_the_cpu(variant):
    batch = make_batch(1)
    model = make(variant).double()
    loss, expected = gradients(model, batch)
    cuda_loss, found = gradients(model.to(CUDA), batch.to(CUDA))
    assert cuda_loss == pytest.approx(loss, rel=1e-10)
    torch.testing.assert_close(found, expected, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision_is_close(dtype):
    batch = make_batch(1).to(CUDA)
    model = make("additive").to(CUDA)
    exact, _ = gradients(model, batch)
    low, found = gradients(model, batch, dtype)
    assert low == pytest.approx(exact, rel=2e-2)
    assert all(torch.isfinite(gradient).all() for gradient in found.values())


@pytest.mark.parametrize("variant", packaged_variants("attention"))
def test_searches_find_what_the_cpu_finds(variant):
    source = make_batch(2).source
    model = make(variant).double().eval()
    with torch.no_grad():
        expected = [search_ids(PlainSteps(model), source, size) for size in (1, 3)]
        model.to(CUDA)
        for steps in (PlainSteps(model), step_model(model)):
            assert [search_ids(steps, source.to(CUDA), size) for size in (1, 3)] == expected


def search_ids(steps, source, beam_size):
    """The ids of the best hypothesis of each sentence."""
    hypotheses = search(steps, source, [12] * 16, beam_size=beam_size)
    return [best.ids for [best] in hypotheses]


def updates(model, batches, *, cuda_graphs, learning_rate=1e-2, ratio=1.0):
    """The losses of updates on a GPU, one for each batch."""
    config = TrainConfig(cuda_graphs=cuda_graphs)
    updater = Updater(model.to(CUDA), config, device=CUDA, precision="fp32")
    options = {"learning_rate": learning_rate, "teacher_forcing_ratio": ratio}
    losses = []
    for number, batch in enumerate(batches):
        whole = UpdateBatches(
            [updater.prepare(batch)], [batch.indices_B.tolist()], batch.num_tokens
        )
        losses.append(updater.apply_update(whole, update=number, **options).loss_sum)
    return losses


def some_batches():
    batches = []
    for seed in range(12):
        max_length = 9 + 8 * (seed % 2)
        batches.append(make_batch(seed, max_length))
    return batches


@pytest.mark.parametrize("variant", sorted(set(REPEATABLE) - {"hierarchical"}))  # which is refused
def test_graphs_make_the_updates_of_the_plain_pass(variant):
    expected = updates(make(variant), some_batches(), cuda_graphs=False)
    assert updates(make(variant), some_batches(), cuda_graphs=True) == pytest.approx(
        expected, rel=1e-3
    )


@pytest.mark.parametrize("cuda_graphs", ["false", "true"])
def test_a_resumed_training_ends_as_a_whole_one(tmp_path, cuda_graphs):
    fixed = [
        "train.schedule={name: constant, warmup_updates: 0}",
        "train.precision=fp32",
        "train.device=cuda",
    ]
    settings = [*toy_settings(tmp_path / "toy"), *fixed, f"train.cuda_graphs={cuda_graphs}"]
    whole = load_config(["multi30k-fast"], [*settings, "train.max_updates=12"])
    half = load_config(["multi30k-fast"], [*settings, "train.max_updates=6"])
    expected = train(whole, run_dir=tmp_path / "whole")
    train(half, run_dir=tmp_path / "halves")
    resumed = train(whole, run_dir=tmp_path / "halves", resume=True)
    tensors = read_tensors(resumed.state_path).tensors
    expected_tensors = read_tensors(expected.state_path).tensors
    torch.testing.assert_close(tensors, expected_tensors, rtol=1e-4, atol=1e-6)


def test_a_graph_drops_other_numbers_at_each_replay():
    batches = [make_batch(1)] * 8
    losses = updates(make("additive", dropout=0.5), batches, cuda_graphs=True, learning_rate=0.0)
    assert len(set(losses)) == len(losses)


def test_graphs_feed_back():
    batches = [make_batch(1)] * 8
    losses = updates(make("additive"), batches, cuda_graphs=True, ratio=0.5)
    assert losses[-1] < losses[0]
