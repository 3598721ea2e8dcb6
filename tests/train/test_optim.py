from __future__ import annotations

import math

import pytest
import torch
from torch import nn

from seq2seq_attn.config import OptimizerConfig
from seq2seq_attn.train.optim import WeightAverage, build_optimizer, clip_gradients, set_learning_rate


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
