"""Save and load the state that a resume needs."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch

from seq2seq_attn.config import Config
from seq2seq_attn.data.store import PreparedCorpus
from seq2seq_attn.errors import UsageError, UserError
from seq2seq_attn.run_dir import RunDir
from seq2seq_attn.runtime.precision import Precision
from seq2seq_attn.train import checkpoint
from seq2seq_attn.train.distributed import Group
from seq2seq_attn.train.start import compare_sessions
from seq2seq_attn.train.state import TrainState
from seq2seq_attn.train.update import Updater


class Loaded(NamedTuple):
    """The counters of a saved training run, whose tensors the updater holds again."""

    state: TrainState
    finished: str | None
    """why training ended; None if it did not"""
    metrics_position: int
    """the length of `metrics.jsonl` that belongs to the state, in bytes"""


class SavedState:
    """The state in a run's `last/`. The first rank writes it, with the random number generators of all ranks."""

    def __init__(
        self,
        run: RunDir,
        prepared: PreparedCorpus,
        config: Config,
        updater: Updater,
        *,
        device: torch.device,
        precision: Precision,
        group: Group,
    ) -> None:
        self._run = run
        self._prepared = prepared
        self._config = config
        self._updater = updater
        self._device = device
        self._precision = precision
        self._group = group

    def save(self, state: TrainState, *, finished: str | None, metrics_position: int | None) -> None:
        """Save everything. All ranks call this. `metrics_position` is None on ranks that do not write."""
        rng_states = checkpoint.joined_rng_states(self._group.gather(checkpoint.rng_state(self._device)))
        if metrics_position is None:
            return
        values: dict[str, Any] = {
            "state": state.to_dict(),
            "finished": finished,
            "config": self._config.model_dump(mode="json"),
            "corpus": self._prepared.content_hash,
            "metrics_position": metrics_position,
            "num_threads": torch.get_num_threads(),
            "num_processes": self._group.size,
            "precision": self._precision,
            **self._updater.values(),
        }
        checkpoint.save_state(self._run.last_dir, self._updater.tensors() | rng_states, values)

    def load(self) -> Loaded | None:
        """Restore the saved state of the updater and the random number generators; None if there is none.

        Raises:
            UserError: the state is damaged, or belongs to another corpus or model.
            UsageError: another length limit.
        """
        if not self._group.broadcast(lambda: checkpoint.has_state(self._run.last_dir)):
            return None
        with checkpoint.refusing_foreign(self._run.last_dir):
            tensors, values = checkpoint.load_state(self._run.last_dir)
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
            group_size = self._group.size
            compare_sessions(values, device=self._device, precision=self._precision, num_processes=group_size)
            self._updater.load(tensors, values)
            if self._group.rank < values.get("num_processes", 1):
                checkpoint.set_rng_state(tensors, self._device, rank=self._group.rank)
            return Loaded(TrainState.from_dict(values["state"]), values["finished"], int(values["metrics_position"]))
