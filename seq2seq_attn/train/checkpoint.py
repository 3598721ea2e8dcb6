"""Checkpoints: the state that an exact resume needs, in `last/state.safetensors` of a run.

The tensors of this file are the weights, the average of the weights, the moments of the optimizer
and the states of the random number generators. The header of the file holds the counters
(`TrainState`), the state of the loss scaler, and settings of the session that affect results. The
best model, which is used for translation, is in a separate file (`model.safetensors` of the run
directory).
"""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping
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
    """Sums over the updates that were applied since the last `train` line of `metrics.jsonl`."""

    num_updates: int = 0
    num_tokens: int = 0
    loss_sum: float = 0.0
    nll_sum: float = 0.0
    gradient_norm_sum: float = 0.0
    seconds: float = 0.0
    terms: dict[str, list[float]] = field(default_factory=dict)
    """the sum of terms and the count of each objective, by name"""

    def add(self, result: UpdateResult) -> None:
        """Add an update that was applied."""
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
        """Return the mean term of each objective by name. The mean is NaN if the count is zero."""
        means = {}
        for name, (total, count) in self.terms.items():
            means[name] = total / count if count else math.nan
        return means


@dataclass
class TrainState:
    """The progress of training as plain numbers, which are saved as JSON."""

    update: int = 0
    """number of applied updates"""
    epoch: int = 0
    """number of complete epochs"""
    batches_done: int = 0
    """number of complete micro-batches of the current epoch"""
    num_tokens: int = 0
    """number of target tokens of the applied updates, EOS included"""
    elapsed_s: float = 0.0
    """training time, including validations and earlier sessions"""
    num_bad: int = 0
    """number of updates that were skipped because the loss or a gradient was not finite"""
    num_bad_in_row: int = 0
    """number of updates that were skipped since the last applied update, for the same reason"""
    validated_at: int = 0
    """the update of the last validation; 0 before the first validation"""
    saved_at: int | None = None
    """the update of the last saved state; None before the first state is saved"""
    best_score: float | None = None
    """the configured metric in the best validation"""
    best_rank: list[float] | None = None
    """the values by which validations are compared, of the best validation; a larger list is
    better"""
    best_update: int | None = None
    """the update of the best validation"""
    best_num_cut: int = 0
    """number of hypotheses that the length limit ended, in the best validation"""
    num_without_better: int = 0
    """number of validations since the last validation that counts as better for `patience`"""
    end_reason: str | None = None
    """the reason why training ended; None before the end"""
    metrics_position: int = 0
    """length of `metrics.jsonl` in bytes when this state was saved"""
    window: Window = field(default_factory=Window)

    def record_update(self, result: UpdateResult, batches: UpdateBatches) -> None:
        """Record an update that was applied or skipped, and the end of the epoch if the update
        has the last batches of the epoch."""
        self.batches_done += len(batches.indices)
        if batches.ends_epoch:
            self.epoch += 1
            self.batches_done = 0
        if result.outcome == "non_finite":
            self.num_bad += 1
            self.num_bad_in_row += 1
        elif result.outcome == "applied":
            self.update += 1
            self.num_tokens += result.num_tokens
            self.num_bad_in_row = 0
            self.window.add(result)

    def record_validation(self, validation: Validation, config: TrainConfig) -> bool:
        """Record a validation, and return whether the validation is the best so far by the
        configured metric. Equal scores are compared by perplexity, because BLEU is 0 early in
        training."""
        self.validated_at = self.update
        metric = config.validation.metric
        score = validation.scores[metric]
        perfect = perfect_score(metric)
        rank = [score if perfect else -score, -validation.scores["perplexity"]]
        is_best = self.best_rank is None or rank > self.best_rank
        # After a perfect score, only the perplexity can improve, which does not prolong training.
        if is_best and self.best_score != perfect:
            self.num_without_better = 0
        else:
            self.num_without_better += 1
        if is_best:
            self.best_rank = rank
            self.best_update = self.update
            self.best_score = score
            self.best_num_cut = validation.num_cut
        return is_best

    def is_validation_due(self, config: TrainConfig) -> bool:
        """Return whether a validation is due after the last update and has not been made: every
        `every_updates` updates, or else at the end of each epoch. A state may be saved before its
        validation, so a resume may start with a validation."""
        if self.update == self.validated_at:
            return False
        every_updates = config.validation.every_updates
        if every_updates is None:
            return self.batches_done == 0  # an epoch is complete
        return self.update % every_updates == 0

    def is_save_due(self, config: TrainConfig) -> bool:
        """Return whether the state must be saved now: the run is new, or a multiple of
        `checkpoint_every_updates` updates is complete and has not been saved."""
        if self.saved_at is None:
            return True
        return self.update != self.saved_at and self.update % config.checkpoint_every_updates == 0

    def stop_reason(self, config: TrainConfig) -> str | None:
        """Return the reason to stop training, or None if training continues."""
        if config.max_updates and self.update >= config.max_updates:
            return f"train.max_updates={config.max_updates} reached"
        if config.max_epochs and self.epoch >= config.max_epochs:
            return f"train.max_epochs={config.max_epochs} reached"
        if config.max_minutes and self.elapsed_s >= 60 * config.max_minutes:
            return f"train.max_minutes={config.max_minutes:g} reached"
        patience = config.validation.patience
        if patience and self.num_without_better >= patience:
            return (
                f"train.validation.patience={patience} reached: {config.validation.metric} has not "
                f"improved in {patience} validations"
            )
        return None


def perfect_score(metric: str) -> float:
    """Return the best possible score of a metric: 0 for perplexity, which never reaches it, and for
    error rates, otherwise 100."""
    if metric == "perplexity" or METRICS[metric].is_lower_better:
        return 0.0
    return 100.0


def save_training(run: Run, updater: Updater, state: TrainState) -> None:
    """Save the weights, the optimizer, the counters, and the random number generators of all ranks.
    All ranks call this function; only the first rank writes.

    Raises:
        UserError: a weight or a moment is not finite. The state that was saved before is kept.
    """
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
    """Restore models, optimizer and random number generators, and return the counters. Log a
    warning if results will differ from the results of the session that saved the state.

    Raises:
        UserError: the state does not fit the model, or was saved by a different version.
    """
    try:
        values = saved.values
        _warn_about_changes(values, updater)
        load_tensors(updater, saved.tensors)
        if updater.scaler and values["scaler"]:
            updater.scaler.load_state_dict(values["scaler"])
        rank = updater.group.rank
        if rank < values["num_processes"]:  # a further rank keeps the generator of its seed
            set_rng_state(saved.tensors, updater.device, rank)
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


def _warn_about_changes(values: Mapping[str, Any], updater: Updater) -> None:
    """Log a warning for each of the `_circumstances` that differs from the values of the session
    that saved the state."""
    effects = {
        "num_threads": "the last bits of sums may differ; see train.num_threads",
        "precision": "results will differ; see train.precision",
        "num_processes": "dropout masks will differ",
        "torch": "the last bits of results may differ",
    }
    if updater.device.type != "cpu":
        del effects["num_threads"]
    circumstances = _circumstances(updater)
    for key, effect in effects.items():
        if circumstances[key] != values[key]:
            text = "%s: %s in this session, %s before: %s"
            log.warning(text, key, circumstances[key], values[key], effect)


def _circumstances(updater: Updater) -> dict[str, Any]:
    """Return the properties of a session on which its results depend, besides the configuration."""
    return {
        "num_threads": torch.get_num_threads(),
        "precision": updater.precision,
        "torch": torch.__version__,
        "num_processes": updater.group.size,
    }


def _weights(updater: Updater) -> dict[str, Tensor]:
    """Return the parameters and buffers of the trained models, and the average of the weights, by
    name. A parameter that layers share has a single name."""
    weights = {}
    trained = updater.trained
    for name, tensor in [*trained.named_parameters(), *trained.named_buffers()]:
        weights[f"model/{name}"] = tensor
    if updater.average:
        for name, average in updater.average.weights.items():
            weights[f"average/{name}"] = average
    return weights


def training_tensors(updater: Updater) -> dict[str, Tensor]:
    """Return the weights, the average of the weights, and the moments and step counts of the
    optimizer. The key of a weight is `model/NAME`, of an average `average/NAME`, and of a moment or
    step count `optimizer/INDEX/KEY` with the index of the parameter."""
    tensors = _weights(updater)
    for index, state in updater.optimizer.state_dict()["state"].items():
        for key, value in state.items():
            tensors[f"optimizer/{index}/{key}"] = value
    return tensors


@torch.no_grad()
def load_tensors(updater: Updater, tensors: dict[str, Tensor]) -> None:
    """Load the tensors that `training_tensors` returned. The optimizer keeps the settings of the
    configuration, such as its learning rate.

    Raises:
        KeyError: a weight is missing.
        RuntimeError: a weight has another shape.
    """
    for name, tensor in _weights(updater).items():
        tensor.copy_(tensors[name])
    moments: dict[int, dict[str, Tensor]] = {}
    for name, tensor in tensors.items():
        if name.startswith("optimizer/"):
            _, index, key = name.split("/")
            moments.setdefault(int(index), {})[key] = tensor
    updater.optimizer.load_state_dict({**updater.optimizer.state_dict(), "state": moments})


def rng_state(device: torch.device, rank: int) -> dict[str, Tensor]:
    """Return the states of torch's random number generators, from which training on this rank draws
    all random numbers."""
    tensors = {f"rng/{rank}/torch": torch.get_rng_state()}
    if device.type == "cuda":
        tensors[f"rng/{rank}/cuda"] = torch.cuda.get_rng_state(device)
    return tensors


def set_rng_state(tensors: dict[str, Tensor], device: torch.device, rank: int) -> None:
    """Restore the random number generators of a rank. The generator of a GPU is restored only if
    the state was saved by training on a GPU."""
    torch.set_rng_state(tensors[f"rng/{rank}/torch"])
    cuda_key = f"rng/{rank}/cuda"
    if device.type == "cuda" and cuda_key in tensors:
        torch.cuda.set_rng_state(tensors[cuda_key], device)
