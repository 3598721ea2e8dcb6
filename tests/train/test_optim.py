from __future__ import annotations

import math

import pytest
import torch
from torch import nn

from seq2seq_attn.config import OptimizerConfig, ScheduleConfig, TrainConfig
from seq2seq_attn.errors import UsageError
from seq2seq_attn.train.optim import (
    Plateau,
    WeightAverage,
    build_optimizer,
    clip_gradients,
    learning_rate_factor,
    set_learning_rate,
)
from seq2seq_attn.train.schedules import Schedules


def factor(update: int, total: int | None = 100, **settings: object) -> float:
    return learning_rate_factor(update, ScheduleConfig.model_validate(settings), total_updates=total)


def test_warm_up_is_linear_and_never_zero() -> None:
    values = [factor(update, name="constant", warmup_updates=4) for update in range(6)]
    assert values == [0.25, 0.5, 0.75, 1.0, 1.0, 1.0]


def test_inverse_sqrt_continues_the_warm_up() -> None:
    settings = {"name": "inverse_sqrt", "warmup_updates": 100}
    assert factor(100, **settings) == 1.0
    assert factor(400, **settings) == pytest.approx(0.5)
    assert factor(0, name="inverse_sqrt") == 1.0


def test_cosine_ends_at_its_final_ratio() -> None:
    settings = {"name": "cosine", "warmup_updates": 20, "final_ratio": 0.1}
    assert factor(20, **settings) == 1.0
    assert factor(60, **settings) == pytest.approx(0.55)
    assert factor(100, **settings) == factor(1000, **settings) == pytest.approx(0.1)


def test_trapezoid_falls_at_the_end_only() -> None:
    settings = {"name": "trapezoid", "warmup_updates": 20, "cooldown": 0.4, "final_ratio": 0.1}
    assert factor(9, **settings) == 0.5
    assert factor(20, **settings) == factor(60, **settings) == 1.0
    assert factor(80, **settings) == pytest.approx(0.55)
    assert factor(100, **settings) == factor(1000, **settings) == pytest.approx(0.1)
    assert factor(99, name="trapezoid", cooldown=0.0) == 1.0


@pytest.mark.parametrize("name", ["cosine", "trapezoid"])
def test_a_schedule_without_an_end_is_refused(name: str) -> None:
    with pytest.raises(UsageError, match=rf"train\.schedule\.name='{name}'.*max_epochs"):
        factor(0, total=None, name=name)
    unlimited = TrainConfig.model_validate({"max_epochs": None, "schedule": {"name": name, "warmup_updates": 10}})
    with pytest.raises(UsageError, match=name):
        Schedules(unlimited, updates_per_epoch=10)


def test_plan_ends_at_the_earlier_limit() -> None:
    assert Schedules(TrainConfig(max_epochs=3), updates_per_epoch=10).total_updates == 30
    assert Schedules(TrainConfig(max_epochs=3, max_updates=25), updates_per_epoch=10).total_updates == 25
    assert Schedules(TrainConfig(max_epochs=None), updates_per_epoch=10).total_updates is None


def test_plateau_shrinks_after_its_patience() -> None:
    config = ScheduleConfig(name="plateau", factor=0.5, patience=1)
    plateau = Plateau()
    factors = []
    for is_better in (True, False, False, False, False, True, False):
        plateau.record(is_better, config)
        factors.append(plateau.factor)
    assert factors == [1.0, 1.0, 0.5, 0.5, 0.25, 0.25, 0.25]


@pytest.mark.parametrize("name", ["adam", "adamw"])
def test_decay_spares_vectors(name: str) -> None:
    model = nn.Linear(3, 5)
    nn.init.ones_(model.bias)
    nn.init.ones_(model.weight)
    optimizer = build_optimizer(model, OptimizerConfig.model_validate({"name": name, "weight_decay": 0.5}))
    set_learning_rate(optimizer, 0.1)
    for parameter in model.parameters():
        parameter.grad = torch.zeros_like(parameter)
    optimizer.step()
    assert torch.equal(model.bias, torch.ones(5))
    assert (model.weight < 1.0).all()


@pytest.mark.parametrize("name", ["adam", "adamw"])
def test_two_steps_by_hand(name: str) -> None:
    """Gradients 1 and 0. Means without bias: first 1, then b1 (1 - b1) / (1 - b1^2) = b1 / (1 + b1); squares alike."""
    settings = {"name": name, "betas": (0.5, 0.25), "eps": 0.3}
    model = nn.Linear(1, 1, bias=False)
    nn.init.zeros_(model.weight)
    optimizer = build_optimizer(model, OptimizerConfig.model_validate(settings))
    set_learning_rate(optimizer, 0.1)
    positions = []
    for gradient in (1.0, 0.0):
        model.weight.grad = torch.full_like(model.weight, gradient)
        optimizer.step()
        positions.append(model.weight.item())
    second = (0.5 / 1.5) / (math.sqrt(0.25 / 1.25) + 0.3)
    assert positions == pytest.approx([-0.1 / 1.3, -0.1 / 1.3 - 0.1 * second], rel=1e-5)


def test_clipping_bounds_the_joint_norm_and_reports_the_one_before() -> None:
    parameters = [nn.Parameter(torch.zeros(2)), nn.Parameter(torch.zeros(1))]
    parameters[0].grad, parameters[1].grad = torch.tensor([3.0, 4.0]), torch.tensor([12.0])
    version = parameters[1].grad._version
    assert clip_gradients(parameters, None).item() == pytest.approx(13.0)
    assert (parameters[1].grad.item(), parameters[1].grad._version) == (12.0, version)
    assert clip_gradients(parameters, 1.3).item() == pytest.approx(13.0)
    norm = math.sqrt(sum(float((p.grad**2).sum()) for p in parameters if p.grad is not None))
    assert norm == pytest.approx(1.3, rel=1e-5)


def test_average_starts_fast_and_swaps_bit_for_bit() -> None:
    model = nn.Linear(2, 3)
    average = WeightAverage(model, decay=0.99)
    start = model.weight.detach().clone()
    with torch.no_grad():
        model.weight += 1.0
    average.update(1)
    expected = start + (1 - 2 / 11) * (model.weight.detach() - start)
    torch.testing.assert_close(average.state_dict()["weight"], expected)
    before = model.weight.detach().clone()
    with average.swapped_in():
        torch.testing.assert_close(model.weight.detach(), expected)
    assert torch.equal(model.weight, before)


def test_an_objective_acts_in_its_part_of_the_training():
    objectives = {
        "coverage": {"weight": 0.5, "start": 0.8},
        "guided": {"weight": 2, "end": 0.5},
        "entropy": {"weight": 1},
    }
    schedules = Schedules(TrainConfig.model_validate({"max_epochs": 2, "objectives": objectives}), updates_per_epoch=5)
    assert schedules.objective_weights(0) == {"coverage": 0.0, "guided": 2.0, "entropy": 1.0}
    assert schedules.objective_weights(5) == {"coverage": 0.0, "guided": 0.0, "entropy": 1.0}
    assert schedules.objective_weights(8) == {"coverage": 0.5, "guided": 0.0, "entropy": 1.0}
    assert schedules.objective_weights(11)["coverage"] == 0.5  # epochs may have more updates than the first


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"objectives": {"coverage": {"start": 0.5, "end": 0.5}}}, "start=0.5: expected less than its end, 0.5"),
        ({"objectives": {"coverage": {"start": 0.5}}, "max_epochs": None}, "whose end is not set"),
    ],
)
def test_an_objective_that_cannot_act_is_refused(settings, message):
    with pytest.raises(UsageError, match=message):
        Schedules(TrainConfig.model_validate(settings), updates_per_epoch=5)
