"""The state of training apart from tensors: plain numbers, saved as JSON for a resume."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from seq2seq_attn.config import TrainConfig, ValidationConfig
from seq2seq_attn.metrics.table import METRICS
from seq2seq_attn.train.schedules import Plateau

if TYPE_CHECKING:
    from seq2seq_attn.train.batches import UpdateBatches
    from seq2seq_attn.train.update import UpdateResult
    from seq2seq_attn.train.validate import Validation


@dataclass
class Window:
    """Sums since the last line of the log."""

    num_updates: int = 0
    num_tokens: int = 0
    loss_sum: float = 0.0
    nll_sum: float = 0.0
    gradient_norm_sum: float = 0.0
    seconds: float = 0.0
    terms: dict[str, list[float]] = field(default_factory=dict)
    """for each objective, the sum of its terms and their count"""

    def add(self, result: UpdateResult) -> None:
        """Add an applied update, but for its time."""
        self.num_updates += 1
        self.num_tokens += result.num_tokens
        self.loss_sum += result.loss_sum
        self.nll_sum += result.nll_sum
        self.gradient_norm_sum += result.gradient_norm
        for name, (total, count) in result.terms.items():
            total_before, count_before = self.terms.get(name, (0.0, 0.0))
            self.terms[name] = [total_before + total, count_before + count]

    def means(self) -> dict[str, float]:
        """The mean term of each objective; NaN if there were no terms."""
        return {name: total / count if count else math.nan for name, (total, count) in self.terms.items()}


@dataclass
class TrainState:
    """The counters of a training run: complete updates and epochs, and the state of validation."""

    update: int = 0
    epoch: int = 0
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
    finished: str | None = None
    """why training ended; None if it has not"""
    metrics_position: int = 0
    """the length of `metrics.jsonl` that belongs to this state, in bytes"""
    plateau: Plateau = field(default_factory=Plateau)
    window: Window = field(default_factory=Window)

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> TrainState:
        """The inverse of `to_dict`."""
        parts = {"plateau": Plateau(**values["plateau"]), "window": Window(**values["window"])}
        return cls(**{**values, **parts})

    def record_update(self, result: UpdateResult, batches: UpdateBatches) -> None:
        """Record an update, applied or skipped, and the end of the epoch if these are its last batches."""
        self.batches_done += len(batches.indices)
        if batches.ends_epoch:
            self.epoch, self.batches_done = self.epoch + 1, 0
        if result.kind == "non_finite":
            self.num_bad += 1
            self.num_bad_in_row += 1
        elif result.kind == "applied":
            self.update += 1
            self.num_tokens += result.num_tokens
            self.num_bad_in_row = 0
            self.window.add(result)

    def is_validation_due(self, config: ValidationConfig) -> bool:
        """Whether a validation after this update is due and has not been made. (A resume may start with a
        validation.)"""
        if self.update == self.validated_at:
            return False
        if config.every_updates is None:
            return self.batches_done == 0
        return self.update % config.every_updates == 0

    def is_save_due(self, config: TrainConfig) -> bool:
        """Whether this is a new run, or the update one to save after that has not been saved."""
        is_regular = self.update != self.saved_at and self.update % config.checkpoint_every_updates == 0
        return self.saved_at is None or is_regular

    def record_validation(self, validation: Validation, config: ValidationConfig) -> bool:
        """Record a validation and return whether it is the best so far by the configured metric. Perplexity breaks ties
        of other metrics (BLEU is 0 early on)."""
        self.validated_at = self.update
        score, perplexity = validation.scores[config.metric], validation.perplexity
        is_lower_better = config.metric == "perplexity" or METRICS[config.metric].is_lower_better
        rank = [-score if is_lower_better else score, -perplexity]
        is_better = self.best_rank is None or rank > self.best_rank
        if is_better:
            self.best_rank, self.best_update, self.num_without_better = rank, self.update, 0
            self.best_num_cut = validation.num_cut
            self.best_score = score
        else:
            self.num_without_better += 1
        return is_better

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
            metric = config.validation.metric
            return f"train.validation.patience={patience} reached: {metric} has not improved in {patience} validations"
        return None
