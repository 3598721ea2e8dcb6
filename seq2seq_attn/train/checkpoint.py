"""Checkpoints: everything that an exact resume needs, in `last/state.safetensors` of a run.

Its tensors are the weights, their average, the optimizer's moments and the random number generators; the values in its
header are the counters (`TrainState`) and the circumstances of training. The best model, which is for translating, is a
separate file (`model.safetensors` of the run directory).
"""

from __future__ import annotations

import logging
from collections import ChainMap
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from seq2seq_attn.errors import UserError
from seq2seq_attn.model.weights import Saved, read_tensors, write_tensors
from seq2seq_attn.run_dir import RunDir
from seq2seq_attn.train.state import TrainState

if TYPE_CHECKING:
    from seq2seq_attn.train.update import Updater

STATE = "state.safetensors"

log = logging.getLogger(__name__)


def save_training(run: RunDir, updater: Updater, state: TrainState) -> None:
    """Save everything, with the random number generators of all ranks. All ranks call this; the first one writes.

    Raises:
        UserError: a weight or moment is not finite; the former state stays.
    """
    group = updater.group
    rng_states = group.gather(rng_state(updater.device, group.rank))
    if group.is_first:
        values = {"state": state.to_dict(), **_circumstances(updater), **updater.values()}
        save_state(run.last_dir, updater.tensors() | dict(ChainMap(*rng_states)), values)


def restore_training(saved: Saved, updater: Updater) -> TrainState:
    """Restore models, optimizer and random number generators, and return the counters.

    Raises:
        UserError: the state belongs to another model, or to another version of the package.
    """
    tensors, values = saved.tensors, saved.values
    try:
        _warn_of_differences(values, updater)
        updater.load(tensors, values)
        if updater.group.rank < values["num_processes"]:
            set_rng_state(tensors, updater.device, updater.group.rank)
        return TrainState.from_dict(values["state"])
    except torch.OutOfMemoryError:
        raise
    except (AttributeError, LookupError, RuntimeError, TypeError, ValueError) as error:
        reason = " ".join(f"{type(error).__name__}: {error}".split())
        raise UserError(f"this version cannot resume the saved state ({reason}); start a new run") from None


def _circumstances(updater: Updater) -> dict[str, Any]:
    """Settings of a session on which the last bits of results depend."""
    num_threads, num_processes = torch.get_num_threads(), updater.group.size
    return {"num_threads": num_threads, "precision": updater.precision, "num_processes": num_processes}


def _warn_of_differences(values: dict[str, Any], updater: Updater) -> None:
    """Warn if results of this session will differ from those of the session that saved the state."""
    effects = {
        "num_threads": "the last bits of sums may differ; see train.num_threads",
        "precision": "results will differ; see train.precision",
        "num_processes": "dropout masks will differ",
    }
    for key, now in _circumstances(updater).items():
        if now != values[key] and (key != "num_threads" or updater.device.type == "cpu"):
            log.warning("%s: %s in this session, %s before: %s", key, now, values[key], effects[key])


def save_state(last_dir: Path, tensors: dict[str, Tensor], values: dict[str, Any]) -> None:
    """Write a state in place of the former one. Tensors may be on any device; values must be JSON."""
    last_dir.mkdir(parents=True, exist_ok=True)
    write_tensors(last_dir / STATE, tensors, values)


def has_state(last_dir: Path) -> bool:
    """Whether a state has been saved here."""
    return (last_dir / STATE).exists()


def load_state(last_dir: Path) -> Saved:
    """The saved state. Raises UserError if it is missing or damaged."""
    return read_tensors(last_dir / STATE)


def rng_state(device: torch.device, rank: int = 0) -> dict[str, Tensor]:
    """The states of torch's random number generators, from which all training draws on this rank."""
    tensors = {f"rng/{rank}/torch": torch.get_rng_state()}
    if device.type == "cuda":
        tensors[f"rng/{rank}/cuda"] = torch.cuda.get_rng_state(device)
    return tensors


def set_rng_state(tensors: dict[str, Tensor], device: torch.device, rank: int = 0) -> None:
    """Restore the generators of a rank (the GPU's only if the state has one)."""
    torch.set_rng_state(tensors[f"rng/{rank}/torch"])
    if device.type == "cuda" and (name := f"rng/{rank}/cuda") in tensors:
        torch.cuda.set_rng_state(tensors[name], device)


def model_tensors(model: nn.Module) -> dict[str, Tensor]:
    """Parameters and buffers by name. A tied parameter appears once."""
    return {f"model/{name}": tensor for name, tensor in [*model.named_parameters(), *model.named_buffers()]}


@torch.no_grad()
def set_model_tensors(model: nn.Module, tensors: dict[str, Tensor]) -> None:
    """Restore parameters and buffers from a state.

    Raises:
        UserError: the state belongs to another model.
    """
    own = model_tensors(model)
    saved = {name: tensor for name, tensor in tensors.items() if name.startswith("model/")}
    if {k: v.shape for k, v in own.items()} != {k: v.shape for k, v in saved.items()}:
        raise UserError("the saved state belongs to another model; resume with the run's own configuration")
    for name, tensor in own.items():
        tensor.copy_(saved[name])


def optimizer_tensors(optimizer: torch.optim.Optimizer) -> dict[str, Tensor]:
    """The optimizer's moments and step counts by parameter index."""
    return {
        f"optimizer/{number}/{key}": value
        for number, state in optimizer.state_dict()["state"].items()
        for key, value in state.items()
    }


def set_optimizer_tensors(optimizer: torch.optim.Optimizer, tensors: dict[str, Tensor]) -> None:
    """Restore moments and step counts. The settings stay those of the configuration."""
    state: dict[int, dict[str, Tensor]] = {}
    for name, tensor in tensors.items():
        if name.startswith("optimizer/"):
            _, number, key = name.split("/")
            state.setdefault(int(number), {})[key] = tensor
    optimizer.load_state_dict({"state": state, "param_groups": optimizer.state_dict()["param_groups"]})
