from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from seq2seq_attn.config import Config, load_config
from seq2seq_attn.data.batch import Batch, collate
from seq2seq_attn.errors import UserError
from seq2seq_attn.model.build import build_model
from seq2seq_attn.model.seq2seq import Seq2Seq
from seq2seq_attn.runtime.precision import Precision
from seq2seq_attn.train import update as update_module
from seq2seq_attn.train.batches import UpdateBatches
from seq2seq_attn.train.distributed import Group
from seq2seq_attn.train.loss import batch_loss, build_objectives
from seq2seq_attn.train.update import Updater, UpdateResult

CPU = torch.device("cpu")
NUM_IDS = 19
# lengths of the pairs differ, so that a mean of means is not the mean
SOURCES = [[5, 6, 7], [8], [9, 10, 11, 12, 13], [14, 15], [16, 17, 5], [6]]
TARGETS = [[7, 8], [9, 10, 11, 12, 13, 14, 15], [16], [17, 18, 5], [6], [8, 9, 10]]


def config(*overrides: str) -> Config:
    sizes = ("model.embedding_size=11", "model.hidden_size=13", "model.encoder.hidden_size=7")
    no_dropout = tuple(f"model.dropout.{name}=0" for name in ("embedding", "encoder", "readout"))
    return load_config((), [*sizes, *no_dropout, *overrides])


def updater(*overrides: str, precision: Precision = "fp32", **parts: Any) -> Updater:
    torch.manual_seed(1)
    settings = config(*overrides)
    model = build_model(settings.model, num_source_ids=NUM_IDS, num_target_ids=NUM_IDS)
    objectives = build_objectives(settings, model)
    return Updater(model, settings.train, device=CPU, precision=precision, objectives=objectives, **parts)


def batch(indices: Sequence[int]) -> Batch:
    return collate([SOURCES[i] for i in indices], [TARGETS[i] for i in indices], indices)


def make(
    updater: Updater, batches: Sequence[Batch], update: int = 0, learning_rate: float = 0.1, ratio: float = 1.0
) -> UpdateResult:
    indices = [batch.indices_B.tolist() for batch in batches]
    whole = UpdateBatches(list(batches), indices, sum(batch.num_tokens for batch in batches))
    return updater.train_step(whole, update=update, learning_rate=learning_rate, teacher_forcing_ratio=ratio)


def weights(updater: Updater) -> dict[str, torch.Tensor]:
    return {name: tensor.detach().clone() for name, tensor in updater.model.named_parameters()}


def gradients(updater: Updater) -> dict[str, torch.Tensor]:
    return {name: p.grad.clone() for name, p in updater.model.named_parameters() if p.grad is not None}


def multiplied_loss(factors: list[float]) -> Callable[..., Any]:
    """The loss of a micro-batch, multiplied by the first of the factors, which is removed (1 where none is left)."""

    def broken(model: Seq2Seq, batch: Batch, **options: Any) -> Any:
        loss = batch_loss(model, batch, **options)
        return loss._replace(loss_sum=loss.loss_sum * (factors.pop(0) if factors else 1.0))

    return broken


def test_accumulated_micro_batches_are_one_big_batch() -> None:
    together, apart = updater("train.optimizer.clip_norm=null"), updater("train.optimizer.clip_norm=null")
    one = make(together, [batch(range(6))])
    several = make(apart, [batch([0, 2]), batch([1]), batch([3, 4, 5])])
    assert several.num_tokens == one.num_tokens == sum(len(target) + 1 for target in TARGETS)
    assert several.loss_sum == pytest.approx(one.loss_sum, rel=1e-5)
    assert several.gradient_norm == pytest.approx(one.gradient_norm, rel=1e-5)
    expected = gradients(together)
    for name, gradient in gradients(apart).items():
        torch.testing.assert_close(gradient, expected[name], rtol=1e-4, atol=1e-6)


def test_updates_lower_the_loss() -> None:
    learner = updater()
    losses = [make(learner, [batch(range(6))], learning_rate=0.01).loss_sum for _ in range(40)]
    assert losses[-1] < 0.5 * losses[0]


def test_clipping_bounds_what_the_optimiser_sees() -> None:
    learner = updater("train.optimizer.clip_norm=0.01")
    result = make(learner, [batch(range(6))])
    assert result.gradient_norm > 0.01
    total = math.sqrt(sum(float((g**2).sum()) for g in gradients(learner).values()))
    assert total == pytest.approx(0.01, rel=1e-3)


def test_an_update_follows_the_teacher_as_often_as_asked() -> None:
    expected = {
        ratio: batch_loss(updater().model, batch(range(6)), teacher_forcing_ratio=ratio) for ratio in (0.0, 1.0)
    }
    assert expected[0.0].loss_sum.item() != pytest.approx(expected[1.0].loss_sum.item(), rel=1e-4)
    for ratio, loss in expected.items():
        result = make(updater(), [batch(range(6))], ratio=ratio)
        assert result.loss_sum == pytest.approx(loss.loss_sum.item(), rel=1e-5)


def test_label_smoothing_changes_the_loss_and_not_the_likelihood() -> None:
    plain = make(updater(), [batch(range(6))])
    smooth = make(updater("train.label_smoothing=0.1"), [batch(range(6))])
    assert plain.loss_sum == pytest.approx(plain.nll_sum)
    assert smooth.nll_sum == pytest.approx(plain.nll_sum, rel=1e-6)
    assert smooth.loss_sum != pytest.approx(plain.loss_sum, rel=1e-4)


@pytest.mark.parametrize("factor", [math.nan, math.inf])
@pytest.mark.parametrize("precision", ["fp32", "bf16", "fp16"])
def test_a_loss_that_is_not_finite_changes_nothing(
    monkeypatch: pytest.MonkeyPatch, factor: float, precision: Precision
) -> None:
    factors: list[float] = []
    monkeypatch.setattr(update_module, "batch_loss", multiplied_loss(factors))
    learner = updater("train.optimizer.average_decay=0.9", precision=precision)
    make(learner, [batch(range(6))])
    before = {name: tensor.clone() for name, tensor in learner.tensors().items()}
    factors += [1.0, factor]
    result = make(learner, [batch([0, 1]), batch([2, 3])], update=1)
    assert result.kind == "non_finite"
    assert not math.isfinite(result.loss_sum)
    after = learner.tensors()
    assert after.keys() == before.keys()
    assert all(torch.equal(after[name], before[name]) for name in before)
    assert make(learner, [batch(range(6))], update=1).kind == "applied"
    assert all(torch.isfinite(tensor).all() for tensor in weights(learner).values())


def test_an_infinite_loss_with_a_finite_gradient_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def shifted(*args: Any, **options: Any) -> Any:
        loss = batch_loss(*args, **options)
        return loss._replace(loss_sum=loss.loss_sum + math.inf)

    monkeypatch.setattr(update_module, "batch_loss", shifted)
    learner = updater()
    before = weights(learner)
    result = make(learner, [batch(range(6))])
    assert (result.kind, math.isfinite(result.gradient_norm)) == ("non_finite", True)
    assert all(torch.equal(tensor, before[name]) for name, tensor in weights(learner).items())


def test_the_average_follows_more_slowly_as_updates_go_on() -> None:
    """The decay of the update with the index n is (1 + n) / (10 + n)."""
    learner, name = updater("train.optimizer.average_decay=0.9"), "output.projection.bias"
    expected = weights(learner)[name]
    for update in range(4):
        make(learner, [batch(range(6))], update)
        decay = (1 + update) / (10 + update)
        expected = decay * expected + (1.0 - decay) * weights(learner)[name]
    torch.testing.assert_close(learner.tensors()[f"average/{name}"], expected)


def test_an_fp16_overflow_lowers_the_scale_and_is_not_the_batchs_fault() -> None:
    learner = updater(precision="fp16")
    learner.load(learner.tensors(), {"scaler": {**learner.values()["scaler"], "scale": 1e30}})
    before = weights(learner)
    assert make(learner, [batch(range(6))]).kind == "overflow"
    assert learner.values()["scaler"]["scale"] == pytest.approx(5e29)
    assert all(torch.equal(tensor, before[name]) for name, tensor in weights(learner).items())


def test_gradients_that_are_not_finite_at_scale_1_are_the_batchs_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(model: Seq2Seq, batch: Batch, **options: Any) -> Any:
        loss = batch_loss(model, batch, **options)
        bias = model.get_parameter("output.projection.bias")
        return loss._replace(loss_sum=loss.loss_sum + (0.0 * bias).sum().abs().sqrt())  # 0, with a gradient of NaN

    monkeypatch.setattr(update_module, "batch_loss", broken)
    for scale, kind in ((2.0, "overflow"), (1.0, "non_finite")):
        learner = updater(precision="fp16")
        learner.load(learner.tensors(), {"scaler": {**learner.values()["scaler"], "scale": scale}})
        result = make(learner, [batch(range(6))])
        assert math.isfinite(result.loss_sum)
        assert result.kind == kind


def test_an_objective_without_terms_adds_nothing() -> None:
    def linked(links: Sequence[tuple[int, int]]) -> Batch:
        return collate(SOURCES[:1], TARGETS[:1], [0], [np.array(links, dtype=np.uint16).reshape(-1, 2)])

    settings = ("train.objectives={guided: {weight: 1}}", "data.links=ibm1")
    plain, guided = updater(), updater(*settings)
    result = make(guided, [linked([])])
    assert result.terms == {"guided": (0.0, 0)}
    assert result.gradient_norm == make(plain, [batch([0])]).gradient_norm
    assert make(updater(*settings), [linked([(0, 0)])]).terms["guided"][0] > 0.0


def test_a_rank_without_rows_makes_the_others_first_update() -> None:
    scale = 2.0**16  # what every rank's scaler begins with

    class OthersHaveRows(Group):
        def sum_gradients(self, parameters: Iterable[nn.Parameter]) -> None:
            for parameter in parameters:
                parameter.grad = torch.full_like(parameter, 0.001 * scale)

    learner = updater(precision="fp16", group=OthersHaveRows())
    before = weights(learner)
    whole = UpdateBatches([], [[0]], num_tokens=3)
    result = learner.train_step(whole, update=0, learning_rate=0.1, teacher_forcing_ratio=1.0)
    assert result.kind == "applied"
    count = sum(tensor.numel() for tensor in before.values())
    assert result.gradient_norm == pytest.approx(0.001 * math.sqrt(count), rel=1e-4)
    assert all(not torch.equal(tensor, before[name]) for name, tensor in weights(learner).items())


@pytest.mark.parametrize("precision", ["bf16", "fp16"])
def test_half_precision_follows_fp32(precision: Precision) -> None:
    exact, rounded = updater(), updater(precision=precision)
    for update in range(10):
        a = make(exact, [batch(range(6))], update, learning_rate=0.01)
        b = make(rounded, [batch(range(6))], update, learning_rate=0.01)
        assert b.kind == "applied"
        assert b.loss_sum == pytest.approx(a.loss_sum, rel=0.03)
        # clipping sees unscaled gradients: the norm is that of fp32, not 65536 times it
        assert b.gradient_norm == pytest.approx(a.gradient_norm, rel=0.1)
    assert {tensor.dtype for tensor in weights(rounded).values()} == {torch.float32}


@pytest.mark.parametrize("precision", ["fp32", "fp16"])
def test_a_loaded_state_goes_on_bit_for_bit(precision: Precision) -> None:
    options = ("train.optimizer.average_decay=0.9", "model.tie_embeddings=target", "model.readout_size=11")
    learner = updater(*options, precision=precision)
    for update in range(3):
        make(learner, [batch(range(6))], update)
    tensors = {name: tensor.clone() for name, tensor in learner.tensors().items()}
    values = learner.values()
    make(learner, [batch(range(6))], 3)
    other = updater(*options, precision=precision)
    other.load(tensors, values)
    make(other, [batch(range(6))], 3)
    expected = learner.tensors()
    assert all(torch.equal(tensor, expected[name]) for name, tensor in other.tensors().items())
    assert other.values() == learner.values()


def test_out_of_memory_names_what_to_lower(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> Any:
        raise torch.OutOfMemoryError("CUDA out of memory")

    monkeypatch.setattr(update_module, "batch_loss", fail)
    learner = updater("train.batch.size=96", "train.batch.accumulate=2")
    message = r"out of memory with train\.batch\.size=96 sentences.*train\.batch\.size=48.*train\.batch\.accumulate=4"
    with pytest.raises(UserError, match=message):
        make(learner, [batch(range(6))], 0)
