"""The last state of a training: everything an exact resume needs, on disk, valid at every moment.

    last/CURRENT.json            {"format": 1, "state": "state-000012", "files": {file: SHA-256}}
    last/state-000012/           tensors.safetensors, values.json

A new state is written and fsynced beside the current one; replacing `CURRENT.json` (one rename) makes it the current
one; then the old one goes. A process killed anywhere in between leaves the old state or the new one, whole. `best`
(`model.safetensors` of the run directory) is another thing: it is for translating, this is for going on.
"""

from __future__ import annotations

import hashlib
import json
import os
import random
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import load as load_safetensors
from safetensors.torch import save as save_safetensors
from torch import Tensor, nn

from seq2seq_attn.errors import UserError
from seq2seq_attn.files import naming, read_json, write_json

FORMAT = 1
CURRENT = "CURRENT.json"
TENSORS = "tensors.safetensors"
VALUES = "values.json"


def save_state(last_dir: Path, tensors: dict[str, Tensor], values: dict[str, Any]) -> None:
    """Write a state and make it the current one. Tensors may lie on any device; values must be plain JSON."""
    last_dir.mkdir(parents=True, exist_ok=True)
    name = _next_name(last_dir)
    directory = last_dir / name
    directory.mkdir()
    on_cpu = {key: tensor.detach().cpu().contiguous() for key, tensor in tensors.items()}
    hashes = {
        TENSORS: _write_synced(directory / TENSORS, save_safetensors(on_cpu)),
        VALUES: _write_synced(directory / VALUES, json.dumps(values).encode()),
    }
    _sync_directory(directory)
    _sync_directory(last_dir)
    write_json(last_dir / CURRENT, {"format": FORMAT, "state": name, "files": hashes})
    _sync_directory(last_dir)
    for other in last_dir.iterdir():
        if other.name not in (name, CURRENT):
            shutil.rmtree(other) if other.is_dir() else other.unlink()


def has_state(last_dir: Path) -> bool:
    """Whether a state was ever saved here."""
    return (last_dir / CURRENT).exists()


def read_values(last_dir: Path) -> dict[str, Any]:
    """The values of the current state, without its tensors.

    Raises:
        UserError: as `load_state`.
    """
    directory, hashes = _current(last_dir)
    try:
        values: dict[str, Any] = json.loads(_read_checked(directory / VALUES, hashes))
    except ValueError as error:
        raise UserError(f"{directory / VALUES}: not JSON ({error}); the run cannot be resumed") from None
    return values


def load_state(last_dir: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """The current state: tensors (on the CPU) and values.

    Raises:
        UserError: there is none, it is of another format, or a file of it is missing or damaged.
    """
    values = read_values(last_dir)
    directory, hashes = _current(last_dir)
    return load_safetensors(_read_checked(directory / TENSORS, hashes)), values


RngState = tuple[dict[str, Tensor], dict[str, Any]]


def rng_state(device: torch.device) -> RngState:
    """The state of every random number generator, as tensors (torch) and plain values (numpy, Python)."""
    tensors = {"rng/torch": torch.get_rng_state()}
    if device.type == "cuda":
        tensors["rng/cuda"] = torch.cuda.get_rng_state(device)
    version, internal, gauss = random.getstate()
    kind, keys, position, has_gauss, cached = np.random.get_state(legacy=True)
    numpy_values = [str(kind), np.asarray(keys).tolist(), int(position), int(has_gauss), float(cached)]
    return tensors, {"python": [version, list(internal), gauss], "numpy": numpy_values}


def joined_rng_states(states: Sequence[RngState]) -> RngState:
    """The states of all ranks as one: the first rank's under its own names, the others' under `<name>@<rank>`."""
    tensors: dict[str, Tensor] = {}
    values: dict[str, Any] = {}
    for rank, (own_tensors, own_values) in enumerate(states):
        tensors |= {_of_rank(name, rank): tensor for name, tensor in own_tensors.items()}
        values |= {_of_rank(name, rank): value for name, value in own_values.items()}
    return tensors, values


def set_rng_state(tensors: dict[str, Tensor], values: dict[str, Any], device: torch.device, *, rank: int = 0) -> None:
    """Put every generator of a rank back (the GPU's only where the state came from one)."""
    torch.set_rng_state(tensors[_of_rank("rng/torch", rank)])
    if device.type == "cuda" and (name := _of_rank("rng/cuda", rank)) in tensors:
        torch.cuda.set_rng_state(tensors[name], device)
    version, internal, gauss = values[_of_rank("python", rank)]
    random.setstate((version, tuple(internal), gauss))
    kind, keys, position, has_gauss, cached = values[_of_rank("numpy", rank)]
    np.random.set_state((kind, np.array(keys, dtype=np.uint32), position, has_gauss, cached))


def _of_rank(name: str, rank: int) -> str:
    return f"{name}@{rank}" if rank else name


def model_tensors(model: nn.Module) -> dict[str, Tensor]:
    """Parameters and buffers by name; a tied parameter once."""
    return {f"model/{name}": tensor for name, tensor in [*model.named_parameters(), *model.named_buffers()]}


@torch.no_grad()
def set_model_tensors(model: nn.Module, tensors: dict[str, Tensor]) -> None:
    """Fill parameters and buffers from a state.

    Raises:
        UserError: the state is of another model.
    """
    own = model_tensors(model)
    saved = {name: tensor for name, tensor in tensors.items() if name.startswith("model/")}
    if {k: v.shape for k, v in own.items()} != {k: v.shape for k, v in saved.items()}:
        raise UserError("the saved state belongs to another model; resume with the run's own configuration")
    for name, tensor in own.items():
        tensor.copy_(saved[name])


def optimizer_tensors(optimizer: torch.optim.Optimizer) -> dict[str, Tensor]:
    """The optimiser's moments and step counts by parameter number."""
    return {
        f"optimizer/{number}/{key}": value
        for number, state in optimizer.state_dict()["state"].items()
        for key, value in state.items()
    }


def set_optimizer_tensors(optimizer: torch.optim.Optimizer, tensors: dict[str, Tensor]) -> None:
    """Put moments and step counts back; the settings stay those of the configuration."""
    state: dict[int, dict[str, Tensor]] = {}
    for name, tensor in tensors.items():
        if name.startswith("optimizer/"):
            _, number, key = name.split("/")
            state.setdefault(int(number), {})[key] = tensor
    optimizer.load_state_dict({"state": state, "param_groups": optimizer.state_dict()["param_groups"]})


def _next_name(last_dir: Path) -> str:
    numbers = [int(p.name.removeprefix("state-")) for p in last_dir.glob("state-*") if p.name[6:].isdigit()]
    return f"state-{max(numbers, default=0) + 1:06d}"


def _current(last_dir: Path) -> tuple[Path, dict[str, str]]:
    pointer = read_json(last_dir / CURRENT)
    if not isinstance(pointer, dict) or pointer.get("format") != FORMAT:
        found = pointer.get("format") if isinstance(pointer, dict) else None
        raise UserError(f"{last_dir / CURRENT}: state of format {found!r}, this version reads {FORMAT}")
    return last_dir / str(pointer["state"]), dict(pointer["files"])


def _write_synced(path: Path, content: bytes) -> str:
    with naming(path), path.open("wb") as stream:
        stream.write(content)
        stream.flush()
        os.fsync(stream.fileno())
    return hashlib.sha256(content).hexdigest()


def _read_checked(path: Path, hashes: dict[str, str]) -> bytes:
    try:
        content = path.read_bytes()
    except OSError as error:
        raise UserError(f"{path}: cannot be read ({error.strerror}); the run cannot be resumed") from None
    if hashlib.sha256(content).hexdigest() != hashes.get(path.name):
        raise UserError(f"{path}: damaged (its SHA-256 is not the recorded one); the run cannot be resumed")
    return content


def _sync_directory(directory: Path) -> None:
    """Make renames and new names in a directory durable."""
    handle = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
