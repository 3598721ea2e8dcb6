from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import nn

from seq2seq_attn.config import TrainConfig
from seq2seq_attn.errors import UserError
from seq2seq_attn.model.build import build_model
from seq2seq_attn.model.weights import Saved
from seq2seq_attn.train import checkpoint
from seq2seq_attn.train.update import Updater
from tests.toy_run import toy_config

CPU = torch.device("cpu")


def test_a_state_replaces_the_one_before(tmp_path: Path) -> None:
    last = tmp_path / "last"
    assert not checkpoint.has_state(last)
    for number in range(2):
        values = {"number": number, "list": [1, None, "ß", 0.1 + 0.2]}
        checkpoint.save_state(last, {"a": torch.full((2,), number)}, values)
        tensors, loaded, _ = checkpoint.load_state(last)
        assert (tensors["a"].tolist(), loaded) == ([number] * 2, values)
    assert sorted(path.name for path in last.iterdir()) == ["manifest.json", "state.safetensors"]


def test_the_generator_goes_on_where_it_was() -> None:
    def draw() -> tuple[object, ...]:
        return torch.rand(3).tolist(), torch.randn(2).tolist()

    draw()
    tensors = checkpoint.rng_state(CPU)
    first = draw()
    checkpoint.set_rng_state(tensors, CPU)
    assert draw() == first


def test_optimizer_goes_on_bit_for_bit() -> None:
    def step(model: nn.Module, optimizer: torch.optim.Optimizer, value: float) -> None:
        optimizer.zero_grad()
        (model(torch.full((1, 3), value)) ** 2).sum().backward()
        optimizer.step()

    def build() -> tuple[nn.Module, torch.optim.Optimizer]:
        torch.manual_seed(1)
        model = nn.Linear(3, 2)
        return model, torch.optim.Adam(model.parameters(), fused=True)

    model, optimizer = build()
    for value in (1.0, 2.0):
        step(model, optimizer, value)
    saved = checkpoint.model_tensors(model) | checkpoint.optimizer_tensors(optimizer)
    saved = {name: tensor.clone() for name, tensor in saved.items()}
    step(model, optimizer, 3.0)
    other, other_optimizer = build()
    checkpoint.set_model_tensors(other, saved)
    checkpoint.set_optimizer_tensors(other_optimizer, saved)
    step(other, other_optimizer, 3.0)
    assert all(torch.equal(a, b) for a, b in zip(model.parameters(), other.parameters(), strict=True))


def test_tied_parameters_are_saved_once() -> None:
    model = nn.ModuleList([nn.Linear(3, 3, bias=False), nn.Linear(3, 3, bias=False)])
    model[1].weight = model[0].weight
    assert list(checkpoint.model_tensors(model)) == ["model/0.weight"]


def test_a_state_of_another_model_is_refused() -> None:
    saved = checkpoint.model_tensors(nn.Linear(3, 2))
    with pytest.raises(UserError, match="belongs to another model"):
        checkpoint.set_model_tensors(nn.Linear(2, 3), saved)


@pytest.mark.parametrize("values", [{}, {"num_threads": 1, "precision": "fp32", "num_processes": 1}])
def test_a_state_of_another_version_is_refused_in_one_line(values: dict[str, object]) -> None:
    model = build_model(toy_config().model, num_source_ids=9, num_target_ids=9)
    updater = Updater(model, TrainConfig(), device=CPU, precision="fp32")
    with pytest.raises(UserError, match=r"saved state .*; start a new run") as caught:
        checkpoint.restore_training(Saved(updater.tensors() | checkpoint.rng_state(CPU), values, ""), updater)
    assert "\n" not in str(caught.value)
