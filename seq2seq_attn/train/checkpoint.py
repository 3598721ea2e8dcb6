"""Checkpoints: everything that an exact resume needs, in `last/state.safetensors` of a run.

Its tensors are the weights, their average, the optimizer's moments and the random number
generators; the values in its header are the counters (`TrainState`), the scaler, and the
circumstances of training. The best model, which is for translating, is a separate file
(`model.safetensors` of the run directory).
"""

from __future__ import annotations

import logging
import math
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from seq2seq_attn.config import TrainConfig
from seq2seq_attn.errors import UserError
from seq2seq_attn.metrics.table import METRICS
from seq2seq_attn.model.weights import Saved, write_tensors
from seq2seq_attn.run import Run

if TYPE_CHECKING:
    from seq2seq_attn.train.batches import UpdateBatches
    from seq2seq_attn.train.update import Updater, UpdateResult
    from seq2seq_attn.train.validate import Validation

log = logging.getLogger(__name__)


@dataclass
class Window:
    """Sums over the applied updates since the last line of the log."""

    num_updates: int = 0
    num_tokens: int = 0
    loss_sum: float = 0.0
    nll_sum: float = 0.0
    gradient_norm_sum: float = 0.0
    seconds: float = 0.0
    terms: dict[str, list[float]] = field(default_factory=dict)
    """for each objective, the sum of its terms and their count"""

    def add(self, result: UpdateResult) -> None:
        """Add an applied update."""
        self.num_updates += 1
        self.num_tokens += result.num_tokens
        self.loss_sum += result.loss_sum
        self.nll_sum += result.nll_sum
        self.gradient_norm_sum += result.gradient_norm
        for name, (total, count) in result.terms.items():
            sums = self.terms.setdefault(name, [0.0, 0.0])
            sums[0] += total
            sums[1] += count

    def mean_terms(self) -> dict[str, float]:
        """The mean term of each objective; NaN where there was none."""
        means = {}
        for name, (total, count) in self.terms.items():
            means[name] = total / count if count else math.nan
        return means


@dataclass
class TrainState:
    """Training progress as plain numbers, saved as JSON."""

    update: int = 0
    """applied updates"""
    epoch: int = 0
    """complete epochs"""
    batches_done: int = 0
    """complete micro-batches of the current epoch"""
    num_tokens: int = 0
    """target tokens trained on, with EOS"""
    elapsed_s: float = 0.0
    """training time, including validations and earlier sessions"""
    num_bad: int = 0
    """updates skipped for a non-finite loss or gradient"""
    num_bad_in_row: int = 0
    validated_at: int = 0
    """the update of the last validation"""
    saved_at: int | None = None
    """the update of the last saved state; None before the first"""
    best_score: float | None = None
    best_rank: list[float] | None = None
    """the key by which validations are compared; higher is better"""
    best_update: int | None = None
    best_num_cut: int = 0
    """hypotheses cut at the length limit in the best validation"""
    num_without_better: int = 0
    """validations since the best one"""
    plateau_factor: float = 1.0
    """the factor on the learning rate of the schedule `plateau`"""
    end_reason: str | None = None
    """why training ended; None if it has not"""
    metrics_position: int = 0
    """the length of `metrics.jsonl` that belongs to this state, in bytes"""
    window: Window = field(default_factory=Window)

    def record_update(self, result: UpdateResult, batches: UpdateBatches) -> None:
        """Record an update, applied or skipped, and the end of the epoch if these are its last
        batches."""
        self.batches_done += len(batches.indices)
        if batches.ends_epoch:
            self.epoch += 1
            self.batches_done = 0
        if result.kind == "non_finite":
            self.num_bad += 1
            self.num_bad_in_row += 1
        elif result.kind == "applied":
            self.update += 1
            self.num_tokens += result.num_tokens
            self.num_bad_in_row = 0
            self.window.add(result)

    def record_validation(self, validation: Validation, config: TrainConfig) -> bool:
        """Record a validation and return whether it is the best so far by the configured metric.
        Perplexity breaks ties of other metrics (BLEU is 0 early on). The schedule `plateau` lowers
        the learning rate after each `patience + 1` validations in a row that are not the best."""
        self.validated_at = self.update
        metric = config.validation.metric
        score = validation.scores[metric]
        is_lower_better = metric == "perplexity" or METRICS[metric].is_lower_better
        rank = [-score if is_lower_better else score, -validation.scores["perplexity"]]
        if self.best_rank is None or rank > self.best_rank:
            self.best_rank = rank
            self.best_update = self.update
            self.best_score = score
            self.best_num_cut = validation.num_cut
            self.num_without_better = 0
            return True
        self.num_without_better += 1
        schedule = config.schedule
        if schedule.name == "plateau" and self.num_without_better % (schedule.patience + 1) == 0:
            self.plateau_factor *= schedule.factor
        return False

    def is_validation_due(self, config: TrainConfig) -> bool:
        """Whether a validation after this update is due and has not been made. (A resume may start
        with a validation.)"""
        if self.update == self.validated_at:
            return False
        every_updates = config.validation.every_updates
        if every_updates is None:
            return self.batches_done == 0
        return self.update % every_updates == 0

    def is_save_due(self, config: TrainConfig) -> bool:
        """Whether this is a new run, or the update is one to save after that has not been saved."""
        if self.saved_at is None:
            return True
        return self.update != self.saved_at and self.update % config.checkpoint_every_updates == 0

    def stop_reason(self, config: TrainConfig) -> str | None:
        """The reason to stop training, or None."""
        if config.max_updates is not None and self.update >= config.max_updates:
            return f"train.max_updates={config.max_updates} reached"
        if config.max_epochs is not None and self.epoch >= config.max_epochs:
            return f"train.max_epochs={config.max_epochs} reached"
        if config.max_minutes is not None and self.elapsed_s >= 60 * config.max_minutes:
            return f"train.max_minutes={config.max_minutes:g} reached"
        patience = config.validation.patience
        if patience is not None and self.num_without_better >= patience:
            return (
                f"train.validation.patience={patience} reached: {config.validation.metric} has not "
                f"improved in {patience} validations"
            )
        return None


def save_training(run: Run, updater: Updater, state: TrainState) -> None:
    """Save everything, with the random number generators of all ranks. All ranks call this; the
    first one writes. Raises UserError: a weight or moment is not finite; the former state stays."""
    group = updater.group
    rng_states = group.gather(rng_state(updater.device, group.rank))
    if group.is_first:
        tensors = training_tensors(updater)
        for rng_tensors in rng_states:
            tensors |= rng_tensors
        scaler = updater.scaler.state_dict() if updater.scaler else None
        values = {"state": asdict(state), "scaler": scaler, **_circumstances(updater)}
        write_tensors(run.state_path, tensors, values)


def restore_training(saved: Saved, updater: Updater) -> TrainState:
    """Restore models, optimizer and random number generators, and return the counters. Warn if
    results will differ from those of the session that saved the state. Raises UserError: the state
    belongs to another model, or to another version of the package."""
    tensors = saved.tensors
    values = saved.values
    effects = {
        "num_threads": "the last bits of sums may differ; see train.num_threads",
        "precision": "results will differ; see train.precision",
        "num_processes": "dropout masks will differ",
    }
    if updater.device.type != "cpu":
        del effects["num_threads"]
    try:
        circumstances = _circumstances(updater)
        for key, effect in effects.items():
            if circumstances[key] != values[key]:
                text = "%s: %s in this session, %s before: %s"
                log.warning(text, key, circumstances[key], values[key], effect)
        load_tensors(updater, tensors)
        if updater.scaler and values["scaler"]:
            updater.scaler.load_state_dict(values["scaler"])
        if updater.group.rank < values["num_processes"]:
            set_rng_state(tensors, updater.device, updater.group.rank)
        state = TrainState(**values["state"])
        state.window = Window(**values["state"]["window"])
        return state
    except torch.OutOfMemoryError:
        raise
    except (AttributeError, LookupError, RuntimeError, TypeError, ValueError) as error:
        reason = " ".join(f"{type(error).__name__}: {error}".split())
        raise UserError(
            f"this version cannot resume the saved state ({reason}); start a new run"
        ) from None


def _circumstances(updater: Updater) -> dict[str, Any]:
    """Settings of a session on which the last bits of results depend."""
    return {
        "num_threads": torch.get_num_threads(),
        "precision": updater.precision,
        "num_processes": updater.group.size,
    }


def _weights(updater: Updater) -> dict[str, Tensor]:
    """Parameters and buffers by name; a tied parameter once."""
    weights: dict[str, Tensor] = {}
    trained = updater.trained
    for name, tensor in (*trained.named_parameters(), *trained.named_buffers()):
        weights[f"model/{name}"] = tensor
    if updater.average:
        for name, average in updater.average.weights.items():
            weights[f"average/{name}"] = average
    return weights


def training_tensors(updater: Updater) -> dict[str, Tensor]:
    """Weights, their average, and the optimizer's moments and step counts by parameter index."""
    tensors = _weights(updater)
    for number, state in updater.optimizer.state_dict()["state"].items():
        for key, value in state.items():
            tensors[f"optimizer/{number}/{key}"] = value
    return tensors


@torch.no_grad()
def load_tensors(updater: Updater, tensors: dict[str, Tensor]) -> None:
    """The inverse of `training_tensors`. The optimizer's settings stay those of the configuration.
    Raises KeyError or RuntimeError: the tensors belong to another model."""
    for name, tensor in _weights(updater).items():
        tensor.copy_(tensors[name])
    moments: dict[int, dict[str, Tensor]] = {}
    for name, tensor in tensors.items():
        kind, _, key = name.partition("/")
        if kind == "optimizer":
            number, _, key = key.partition("/")
            moments.setdefault(int(number), {})[key] = tensor
    updater.optimizer.load_state_dict({**updater.optimizer.state_dict(), "state": moments})


def rng_state(device: torch.device, rank: int) -> dict[str, Tensor]:
    """The states of torch's random number generators, from which all training draws on this
    rank."""
    tensors = {f"rng/{rank}/torch": torch.get_rng_state()}
    if device.type == "cuda":
        tensors[f"rng/{rank}/cuda"] = torch.cuda.get_rng_state(device)
    return tensors


def set_rng_state(tensors: dict[str, Tensor], device: torch.device, rank: int) -> None:
    """Restore the generators of a rank (the GPU's only if the state has one)."""
    torch.set_rng_state(tensors[f"rng/{rank}/torch"])
    cuda = f"rng/{rank}/cuda"
    if device.type == "cuda" and cuda in tensors:
        torch.cuda.set_rng_state(tensors[cuda], device)
