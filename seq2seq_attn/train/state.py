"""The state of training apart from tensors: plain numbers, saved as JSON for a resume."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from seq2seq_attn.config import TrainConfig, ValidationConfig
from seq2seq_attn.metrics.bleu import LOWER_IS_BETTER
from seq2seq_attn.train.optim import Plateau


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
    """of each objective, the sum of its terms and their count"""

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
    best_score: float | None = None
    best_rank: list[float] | None = None
    """the key by which validations are compared; higher is better"""
    best_update: int | None = None
    best_num_cut: int = 0
    """hypotheses cut at the length limit in the best validation"""
    num_without_better: int = 0
    """validations since the best one"""
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

    def take_update(
        self,
        num_tokens: int,
        loss_sum: float,
        nll_sum: float,
        gradient_norm: float,
        terms: Mapping[str, tuple[float, float]],
    ) -> None:
        """Record an applied update."""
        self.update += 1
        self.num_tokens += num_tokens
        self.num_bad_in_row = 0
        window = self.window
        window.num_updates += 1
        window.num_tokens += num_tokens
        window.loss_sum += loss_sum
        window.nll_sum += nll_sum
        window.gradient_norm_sum += gradient_norm
        for name, (total, count) in terms.items():
            before = window.terms.get(name, (0.0, 0.0))
            window.terms[name] = [before[0] + total, before[1] + count]

    def take_batches(self, num_batches: int, *, num_batches_of_epoch: int) -> None:
        """Record complete micro-batches, whether their update was applied or skipped."""
        self.batches_done += num_batches
        if self.batches_done >= num_batches_of_epoch:
            self.epoch, self.batches_done = self.epoch + 1, 0

    def is_validation_due(self, config: ValidationConfig) -> bool:
        """Whether a validation after this update is due and has not been made. (A resume may start with a
        validation.)"""
        if self.update == self.validated_at:
            return False
        if config.every_updates is None:
            return self.batches_done == 0
        return self.update % config.every_updates == 0

    def take_validation(self, scores: Mapping[str, float], *, num_cut: int, config: ValidationConfig) -> bool:
        """Record a validation and return whether it is the best so far. `scores` has the perplexity and the configured
        metric by their names. Perplexity breaks ties of the others (BLEU is 0 early on)."""
        self.validated_at = self.update
        score, perplexity = scores[config.metric], scores["perplexity"]
        is_lower_better = config.metric == "perplexity" or config.metric in LOWER_IS_BETTER
        rank = [-score if is_lower_better else score, -perplexity]
        is_better = self.best_rank is None or rank > self.best_rank
        if is_better:
            self.best_rank, self.best_update, self.num_without_better = rank, self.update, 0
            self.best_num_cut = num_cut
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
