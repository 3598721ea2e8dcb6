"""Checkpoints: everything that an exact resume needs, on disk and valid at every moment.

    last/CURRENT.json            {"format": 1, "state": "state-000012", "files": {file: SHA-256}, "sha256": its own}
    last/state-000012/           tensors.safetensors: weights, their average, optimizer, random number generators
                                 values.json: counters (`TrainState`), configuration, corpus, threads, ...

A new state is written and fsynced next to the current one, becomes current by replacing `CURRENT.json` (one rename),
and then the old state is removed. A process killed at any point leaves one complete state. The best model, which is for
translating, is a separate file (`model.safetensors` of the run directory).
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import re
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from safetensors import SafetensorError
from safetensors.torch import load as load_safetensors
from safetensors.torch import save as save_safetensors
from torch import Tensor, nn

from seq2seq_attn.config import Config
from seq2seq_attn.data.store import PreparedCorpus
from seq2seq_attn.errors import UsageError, UserError
from seq2seq_attn.files import naming, read_checked_json, read_regular, write_checked_json
from seq2seq_attn.run_dir import RunDir
from seq2seq_attn.train.state import TrainState

if TYPE_CHECKING:
    from seq2seq_attn.train.update import Updater

FORMAT = 1
CURRENT = "CURRENT.json"
TENSORS = "tensors.safetensors"
VALUES = "values.json"
_STATE = re.compile(r"state-(\d{6,18})", re.ASCII)
"""The name of a state's folder."""

log = logging.getLogger(__name__)


class Loaded(NamedTuple):
    """The counters of a saved training run, whose tensors the updater holds again."""

    state: TrainState
    finished: str | None
    """why training ended; None if it did not"""
    metrics_position: int
    """the length of `metrics.jsonl` that belongs to the state, in bytes"""


class SavedState:
    """The state in a run's `last/`. The first rank writes it, with the random number generators of all ranks."""

    def __init__(self, run: RunDir, prepared: PreparedCorpus, config: Config, updater: Updater) -> None:
        self._run = run
        self._prepared = prepared
        self._config = config
        self._updater = updater

    def save(self, state: TrainState, *, finished: str | None, metrics_position: int | None) -> None:
        """Save everything. All ranks call this. `metrics_position` is None on ranks that do not write."""
        updater, group = self._updater, self._updater.group
        rng_states = join_rng_states(group.gather(rng_state(updater.device)))
        if metrics_position is None:
            return
        values: dict[str, Any] = {
            "state": state.to_dict(),
            "finished": finished,
            "config": self._config.model_dump(mode="json"),
            "corpus": self._prepared.content_hash,
            "metrics_position": metrics_position,
            "num_threads": torch.get_num_threads(),
            "num_processes": group.size,
            "precision": updater.precision,
            **updater.values(),
        }
        save_state(self._run.last_dir, updater.tensors() | rng_states, values)

    def load(self) -> Loaded | None:
        """Restore the saved state of the updater and the random number generators; None if there is none.

        Raises:
            UserError: the state is damaged, or belongs to another corpus or model.
            UsageError: another length limit.
        """
        updater, group, last_dir = self._updater, self._updater.group, self._run.last_dir
        if not group.broadcast(lambda: has_state(last_dir)):
            return None
        with report_incompatible_state(last_dir):
            tensors, values = load_state(last_dir)
            self._check_same_data(values)
            self._warn_of_differences(values)
            updater.load(tensors, values)
            if group.rank < values["num_processes"]:
                set_rng_state(tensors, updater.device, rank=group.rank)
            return Loaded(TrainState.from_dict(values["state"]), values["finished"], int(values["metrics_position"]))

    def _check_same_data(self, values: dict[str, Any]) -> None:
        if values["corpus"] != self._prepared.content_hash:
            raise UserError(
                f"{self._prepared.directory}: not the corpus that {self._run.path} was started with (its content"
                " hash differs); put the same text and tokenizer versions back, or start a new run"
            )
        before, now = values["config"]["search"]["max_length_ratio"], self._config.search.max_length_ratio
        if before != now:
            raise UsageError(
                f"search.max_length_ratio={now:g}: the run was started with {before:g}, which a resume cannot "
                f"change; set search.max_length_ratio={before:g}"
            )

    def _warn_of_differences(self, values: dict[str, Any]) -> None:
        """Warn if results of this session will differ from those of the session that saved the state."""
        updater, num_threads = self._updater, torch.get_num_threads()
        if updater.device.type == "cpu" and values["num_threads"] != num_threads:
            text = "%d CPU threads in this session, %d before: the last bits of sums may differ; see train.num_threads"
            log.warning(text, num_threads, values["num_threads"])
        if values["precision"] != updater.precision:
            text = "%s in this session, %s before: results will differ; see train.precision"
            log.warning(text, updater.precision, values["precision"])
        if values["num_processes"] != updater.group.size:
            text = "%d processes in this session, %d before: dropout masks will differ"
            log.warning(text, updater.group.size, values["num_processes"])


def save_state(last_dir: Path, tensors: dict[str, Tensor], values: dict[str, Any]) -> None:
    """Write a state, make it current and remove the others. Tensors may be on any device; values must be JSON."""
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
    write_checked_json(last_dir / CURRENT, {"format": FORMAT, "state": name, "files": hashes})
    _sync_directory(last_dir)
    for other in last_dir.iterdir():
        if _STATE.fullmatch(other.name) and other.name != name and other.is_dir() and not other.is_symlink():
            shutil.rmtree(other)
    for leftover in last_dir.glob(f".{CURRENT}.*.tmp"):
        leftover.unlink()


def has_state(last_dir: Path) -> bool:
    """Whether a state has been saved here."""
    return (last_dir / CURRENT).exists()


def read_values(last_dir: Path) -> dict[str, Any]:
    """The values of the current state, without its tensors.

    Raises:
        UserError: as `load_state`.
    """
    directory, hashes = _current(last_dir)
    with report_incompatible_state(last_dir):
        values = json.loads(_read_checked(directory / VALUES, hashes))
        return dict(values)


def load_state(last_dir: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """The current state: tensors (on the CPU) and values.

    Raises:
        UserError: there is no state, its format is unknown, or a file is missing or damaged.
    """
    directory, hashes = _current(last_dir)
    with report_incompatible_state(last_dir):
        values = dict(json.loads(_read_checked(directory / VALUES, hashes)))
        return load_safetensors(_read_checked(directory / TENSORS, hashes)), values


@contextmanager
def report_incompatible_state(last_dir: Path) -> Iterator[None]:
    """Turn errors from a complete but incompatible state into one line.

    Raises:
        UserError: a part of the state is missing or has another type.
    """
    try:
        yield
    except (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError) as error:
        reason = " ".join(f"{type(error).__name__}: {error}".split())
        raise UserError(f"{last_dir}: this version cannot resume this state ({reason}); start a new run") from None
    except torch.OutOfMemoryError:
        raise
    except (RuntimeError, SafetensorError) as error:
        reason = " ".join(str(error).split())
        raise UserError(f"{last_dir}: the tensors do not fit ({reason}); start a new run") from None


def rng_state(device: torch.device) -> dict[str, Tensor]:
    """The states of torch's random number generators, from which all training draws."""
    tensors = {"rng/torch": torch.get_rng_state()}
    if device.type == "cuda":
        tensors["rng/cuda"] = torch.cuda.get_rng_state(device)
    return tensors


def join_rng_states(states: Sequence[dict[str, Tensor]]) -> dict[str, Tensor]:
    """The states of all ranks together: the first rank's under their plain names, the others' under `<name>@<rank>`."""
    return {_rank_key(name, rank): tensor for rank, own in enumerate(states) for name, tensor in own.items()}


def set_rng_state(tensors: dict[str, Tensor], device: torch.device, *, rank: int = 0) -> None:
    """Restore the generators of a rank (the GPU's only if the state has one)."""
    torch.set_rng_state(tensors[_rank_key("rng/torch", rank)])
    if device.type == "cuda" and (name := _rank_key("rng/cuda", rank)) in tensors:
        torch.cuda.set_rng_state(tensors[name], device)


def _rank_key(name: str, rank: int) -> str:
    return f"{name}@{rank}" if rank else name


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


def _next_name(last_dir: Path) -> str:
    matches = [_STATE.fullmatch(path.name) for path in last_dir.iterdir()]
    return f"state-{max((int(match[1]) for match in matches if match), default=0) + 1:06d}"


def _current(last_dir: Path) -> tuple[Path, dict[str, str]]:
    pointer = read_checked_json(last_dir / CURRENT)
    if pointer.get("format") != FORMAT:
        raise UserError(f"{last_dir / CURRENT}: format {pointer.get('format')!r}; this version reads format {FORMAT}")
    state, files = pointer.get("state"), pointer.get("files")
    if not (isinstance(state, str) and _STATE.fullmatch(state) and isinstance(files, dict)):
        raise UserError(f"{last_dir / CURRENT}: damaged (names no state of this run); start a new run")
    return last_dir / state, files


def _write_synced(path: Path, content: bytes) -> str:
    with naming(path), path.open("wb") as stream:
        stream.write(content)
        stream.flush()
        os.fsync(stream.fileno())
    return hashlib.sha256(content).hexdigest()


def _read_checked(path: Path, hashes: dict[str, str]) -> bytes:
    try:
        content = read_regular(path)
    except OSError as error:
        raise UserError(f"{path}: cannot be read ({error.strerror}); the run cannot be resumed") from None
    if hashlib.sha256(content).hexdigest() != hashes.get(path.name):
        raise UserError(f"{path}: damaged (its SHA-256 is not the recorded one); the run cannot be resumed")
    return content


def _sync_directory(directory: Path) -> None:
    """Make renames and new files in a directory durable."""
    handle = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
