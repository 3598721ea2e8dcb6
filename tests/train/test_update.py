"""Updates: gradients over micro-batches and ranks, clipping, the optimizer, the average, and what
is not finite."""

import copy
import math

import numpy as np
import pytest
import torch
from torch import nn

from seq2seq_attn.config import OptimizerConfig, load_config
from seq2seq_attn.data.batch import collate
from seq2seq_attn.errors import UserError
from seq2seq_attn.model.build import build_model
from seq2seq_attn.train import update as update_module
from seq2seq_attn.train.batches import UpdateBatches
from seq2seq_attn.train.checkpoint import load_tensors, training_tensors
from seq2seq_attn.train.distributed import Group
from seq2seq_attn.train.loss import batch_loss, build_objectives
from seq2seq_attn.train.update import Updater, build_optimizer

CPU = torch.device("cpu")
NUM_IDS = 19
# lengths of the pairs differ, so that a mean of means is not the mean
SOURCES = [[5, 6, 7], [8], [9, 10, 11, 12, 13], [14, 15], [16, 17, 5], [6]]
TARGETS = [[7, 8], [9, 10, 11, 12, 13, 14, 15], [16], [17, 18, 5], [6], [8, 9, 10]]
LINKS = [[(0, 0), (1, 0), (2, 1)], [(0, 6)], [], [], [(2, 0)], [(0, 0), (0, 2)]]


def config(*overrides):
    sizes = (
        "model.embedding_size=11",
        "model.hidden_size=13",
        "model.encoder.hidden_size=7",
        "data.links=ibm1",
    )
    no_dropout = tuple(f"model.dropout.{name}=0" for name in ("embedding", "encoder", "readout"))
    return load_config((), [*sizes, *no_dropout, *overrides])


def updater(*overrides, precision="fp32", **parts):
    torch.manual_seed(1)
    settings = config(*overrides)
    model = build_model(settings.model, num_source_ids=NUM_IDS, num_target_ids=NUM_IDS)
    objectives = build_objectives(settings, model)
    return Updater(
        model, settings.train, device=CPU, precision=precision, objectives=objectives, **parts
    )


def batch(indices):
    links = [np.array(LINKS[i], dtype=np.int32).reshape(-1, 2) for i in indices]
    return collate([SOURCES[i] for i in indices], [TARGETS[i] for i in indices], indices, links)


def make(
    updater,
    *rows,
    update=0,
    learning_rate=0.1,
    ratio=1.0,
):
    """An update of micro-batches with these pairs; all pairs in one, if none are named."""
    batches = [batch(indices) for indices in rows or (range(6),)]
    whole = UpdateBatches(
        batches, [list(indices) for indices in rows], sum(one.num_tokens for one in batches)
    )
    return updater.apply_update(
        whole, update=update, learning_rate=learning_rate, teacher_forcing_ratio=ratio
    )


def weights(updater):
    return {name: tensor.detach().clone() for name, tensor in updater.trained.named_parameters()}


def gradients(updater):
    found = {}
    for name, parameter in updater.trained.named_parameters():
        if parameter.grad is not None:
            found[name] = parameter.grad.clone()
    return found


def assert_equal(tensors, expected):
    assert tensors.keys() == expected.keys()
    for name, tensor in tensors.items():
        assert torch.equal(tensor, expected[name]), name


def assert_close(gradients, expected):
    for name, gradient in gradients.items():
        torch.testing.assert_close(gradient, expected[name], rtol=1e-4, atol=1e-6)


def changed_loss(
    change,
):
    """`batch_loss`, with another sum."""

    def changed(model, *args, **options):
        loss = batch_loss(model, *args, **options)
        return loss._replace(loss_sum=change(loss, model))

    return changed


@pytest.mark.parametrize("clip_norm", ["0.01", "null"])
def test_clipping_bounds_what_the_optimizer_sees(clip_norm):
    learner = updater(f"train.optimizer.clip_norm={clip_norm}")
    result = make(learner)
    assert result.gradient_norm > 0.01
    total = math.sqrt(sum(float((g**2).sum()) for g in gradients(learner).values()))
    assert total == pytest.approx(result.gradient_norm if clip_norm == "null" else 0.01, rel=1e-3)


def test_an_update_follows_the_teacher_as_often_as_asked():
    losses = []
    for ratio in (0.0, 1.0):
        expected = batch_loss(updater().model, batch(range(6)), teacher_forcing_ratio=ratio)
        losses.append(make(updater(), ratio=ratio).loss_sum)
        assert losses[-1] == pytest.approx(expected.loss_sum.item(), rel=1e-5)
    assert losses[0] != pytest.approx(losses[1], rel=1e-4)


def test_label_smoothing_changes_the_loss_and_not_the_likelihood():
    plain = make(updater())
    smooth = make(updater("train.label_smoothing=0.1"))
    assert plain.loss_sum == pytest.approx(plain.nll_sum)
    assert smooth.nll_sum == pytest.approx(plain.nll_sum, rel=1e-6)
    assert smooth.loss_sum != pytest.approx(plain.loss_sum, rel=1e-4)


@pytest.mark.parametrize("name", ["adam", "adamw"])
def test_weight_decay_spares_vectors(name):
    model = nn.Linear(3, 5)
    for parameter in model.parameters():
        nn.init.ones_(parameter)
        parameter.grad = torch.zeros_like(parameter)
    settings = {"name": name, "learning_rate": 0.1, "weight_decay": 0.5}
    build_optimizer(model, OptimizerConfig.model_validate(settings)).step()
    assert torch.equal(model.bias, torch.ones(5))
    assert (model.weight < 1.0).all()


@pytest.mark.parametrize("factor", [math.nan, math.inf])
@pytest.mark.parametrize("precision", ["fp32", "bf16", "fp16"])
def test_a_loss_that_is_not_finite_changes_nothing(monkeypatch, factor, precision):
    factors = []
    changed = changed_loss(lambda loss, model: loss.loss_sum * (factors.pop(0) if factors else 1.0))
    monkeypatch.setattr(update_module, "batch_loss", changed)
    learner = updater("train.optimizer.average_decay=0.9", precision=precision)
    make(learner)
    before = copy.deepcopy(training_tensors(learner))
    factors += [1.0, factor]
    result = make(learner, [0, 1], [2, 3], update=1)
    assert (result.outcome, math.isfinite(result.loss_sum)) == ("non_finite", False)
    assert_equal(training_tensors(learner), before)
    assert make(learner, update=1).outcome == "applied"
    assert learner.has_finite_weights()


def test_an_infinite_loss_with_a_finite_gradient_changes_nothing(monkeypatch):
    infinite = changed_loss(lambda loss, model: loss.loss_sum + math.inf)
    monkeypatch.setattr(update_module, "batch_loss", infinite)
    learner = updater()
    before = weights(learner)
    result = make(learner)
    assert (result.outcome, math.isfinite(result.gradient_norm)) == ("non_finite", True)
    assert_equal(weights(learner), before)


def test_an_fp16_overflow_lowers_the_scale_and_is_not_the_batchs_fault():
    learner = updater(precision="fp16")
    learner.scaler.load_state_dict({**learner.scaler.state_dict(), "scale": 1e30})
    before = weights(learner)
    assert make(learner).outcome == "overflow"
    assert learner.scaler.get_scale() == pytest.approx(5e29)
    assert_equal(weights(learner), before)


@pytest.mark.parametrize(("scale", "kind"), [(2.0, "overflow"), (1.0, "non_finite")])
def test_a_bad_gradient_is_the_batchs_fault_once_the_scale_is_1(monkeypatch, scale, kind):
    def with_nan_gradient(loss, model):
        zero = (0.0 * model.get_parameter("output.projection.bias")).sum()
        return loss.loss_sum + zero.abs().sqrt()

    learner = updater(precision="fp16")
    monkeypatch.setattr(update_module, "batch_loss", changed_loss(with_nan_gradient))
    learner.scaler.load_state_dict({**learner.scaler.state_dict(), "scale": scale})
    result = make(learner)
    assert (result.outcome, math.isfinite(result.loss_sum)) == (kind, True)


def test_the_average_starts_fast():
    """The decay of the update with the index n is (1 + n) / (10 + n)."""
    learner = updater("train.optimizer.average_decay=0.9")
    name = "output.projection.bias"
    expected = weights(learner)[name]
    for update in range(4):
        make(learner, update=update)
        decay = (1 + update) / (10 + update)
        expected = decay * expected + (1.0 - decay) * weights(learner)[name]
    torch.testing.assert_close(training_tensors(learner)[f"average/{name}"], expected)


def test_the_average_swaps_bit_for_bit():
    learner = updater("train.optimizer.average_decay=0.9")
    make(learner)
    before = weights(learner)
    with learner.use_average():
        assert_equal(weights(learner), learner.average.weights)
    assert_equal(weights(learner), before)


def test_a_rank_without_rows_makes_the_others_first_update():
    scale = 2.0**16  # what every rank's scaler begins with

    class OthersHaveRows(Group):
        def sum_gradients(self, parameters):
            for parameter in parameters:
                parameter.grad = torch.full_like(parameter, 0.001 * scale)

    learner = updater(precision="fp16", group=OthersHaveRows())
    before = weights(learner)
    whole = UpdateBatches([], [[0]], num_tokens=3)
    result = learner.apply_update(whole, update=0, learning_rate=0.1, teacher_forcing_ratio=1.0)
    assert result.outcome == "applied"
    count = sum(tensor.numel() for tensor in before.values())
    assert result.gradient_norm == pytest.approx(0.001 * math.sqrt(count), rel=1e-4)
    assert all(not torch.equal(tensor, before[name]) for name, tensor in weights(learner).items())


@pytest.mark.parametrize("precision", ["bf16", "fp16"])
def test_half_precision_follows_fp32(precision):
    exact = updater()
    rounded = updater(precision=precision)
    for update in range(10):
        a, b = (make(learner, update=update, learning_rate=0.01) for learner in (exact, rounded))
        assert b.outcome == "applied"
        assert b.loss_sum == pytest.approx(a.loss_sum, rel=0.03)
        # clipping sees unscaled gradients: the norm is that of fp32, not 65536 times it
        assert b.gradient_norm == pytest.approx(a.gradient_norm, rel=0.1)
    assert {tensor.dtype for tensor in weights(rounded).values()} == {torch.float32}


@pytest.mark.parametrize("precision", ["fp32", "fp16"])
def test_loaded_tensors_go_on_bit_for_bit(precision):
    options = (
        "train.optimizer.average_decay=0.9",
        "model.tie_embeddings=target",
        "model.readout_size=11",
    )
    learner, other = (updater(*options, precision=precision) for _ in range(2))
    for update in range(3):
        make(learner, update=update)
    load_tensors(other, copy.deepcopy(training_tensors(learner)))
    make(learner, update=3)
    make(other, update=3)
    assert_equal(training_tensors(other), training_tensors(learner))


def test_out_of_memory_names_what_to_lower(monkeypatch):
    def fail(*_, **__):
        raise torch.OutOfMemoryError("CUDA out of memory")

    monkeypatch.setattr(update_module, "batch_loss", fail)
    with pytest.raises(
        UserError,
        match=r"train\.batch\.size=96 .*train\.batch\.size=48.*train\.batch\.accumulate=4",
    ):
        make(updater("train.batch.size=96", "train.batch.accumulate=2"))
