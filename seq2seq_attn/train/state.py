"""Where a training stands, apart from its tensors: plain numbers, saved as JSON and taken up again by a resume."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from seq2seq_attn.config import TrainConfig, ValidationConfig
from seq2seq_attn.train.optim import Plateau


@dataclass
class Window:
    """What has happened since the last line of the log: sums, so that a resume goes on adding."""

    num_updates: int = 0
    num_tokens: int = 0
    loss_sum: float = 0.0
    nll_sum: float = 0.0
    gradient_norm_sum: float = 0.0
    seconds: float = 0.0
    terms: dict[str, list[float]] = field(default_factory=dict)
    """of each objective, the sum of its terms and their count"""

    def means(self) -> dict[str, float]:
        """Of each objective; NaN without a term."""
        return {name: total / count if count else math.nan for name, (total, count) in self.terms.items()}


@dataclass
class TrainState:
    """The counters of a training. Epochs and updates count what is complete: `update` 7 means seven were made."""

    update: int = 0
    epoch: int = 0
    batches_done: int = 0
    """micro-batches of the running epoch that are behind us"""
    num_tokens: int = 0
    """target tokens learned from, with EOS"""
    elapsed_s: float = 0.0
    """time spent training, validations and earlier sessions included"""
    num_bad: int = 0
    """updates skipped for a non-finite loss or gradient"""
    num_bad_in_row: int = 0
    validated_at: int = 0
    """the update of the last validation"""
    best_score: float | None = None
    best_rank: list[float] | None = None
    """what validations are compared by, higher is better"""
    best_update: int | None = None
    best_num_cut: int = 0
    """hypotheses of the best validation that the length limit cut"""
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
        """Note an update that was made."""
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
        """Note that micro-batches are behind us, whether an update came of them or not."""
        self.batches_done += num_batches
        if self.batches_done >= num_batches_of_epoch:
            self.epoch, self.batches_done = self.epoch + 1, 0

    def is_validation_due(self, config: ValidationConfig) -> bool:
        """A validation belongs to this update and has not been made (a resume may begin with one)."""
        if self.update == self.validated_at:
            return False
        if config.every_updates is None:
            return self.batches_done == 0
        return self.update % config.every_updates == 0

    def take_validation(self, *, bleu: float, perplexity: float, num_cut: int, config: ValidationConfig) -> bool:
        """Note a validation; whether it is the best so far. Perplexity decides between equal BLEUs (0, early on)."""
        self.validated_at = self.update
        is_bleu = config.metric == "bleu"
        rank = [bleu if is_bleu else -perplexity, -perplexity]
        is_better = self.best_rank is None or rank > self.best_rank
        if is_better:
            self.best_rank, self.best_update, self.num_without_better = rank, self.update, 0
            self.best_num_cut = num_cut
            self.best_score = bleu if is_bleu else perplexity
        else:
            self.num_without_better += 1
        return is_better

    def stop_reason(self, config: TrainConfig) -> str | None:
        """Why training is over, or None."""
        if config.max_updates is not None and self.update >= config.max_updates:
            return f"train.max_updates={config.max_updates} reached"
        if config.max_epochs is not None and self.epoch >= config.max_epochs:
            return f"train.max_epochs={config.max_epochs} reached"
        if config.max_minutes is not None and self.elapsed_s >= 60 * config.max_minutes:
            return f"train.max_minutes={config.max_minutes:g} reached"
        patience = config.validation.patience
        if patience is not None and self.num_without_better >= patience:
            return f"{patience} validations without a better {config.validation.metric}"
        return None
