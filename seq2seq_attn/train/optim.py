"""The optimizer, learning rate schedules, gradient clipping, and weight averaging."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from seq2seq_attn.config import OptimizerConfig, ScheduleConfig
from seq2seq_attn.errors import UsageError

FALLING = ("cosine", "trapezoid")
"""schedules of the learning rate that are planned to the end of training"""


def build_optimizer(model: nn.Module, config: OptimizerConfig) -> torch.optim.Optimizer:
    """Adam or AdamW over the model's parameters, fused if torch supports it on the device. Weight decay does not apply
    to vectors, such as biases.
    """
    parameters = [parameter for parameter in model.parameters() if parameter.requires_grad]
    groups = [
        {"params": [p for p in parameters if p.ndim >= 2], "weight_decay": config.weight_decay},
        {"params": [p for p in parameters if p.ndim < 2], "weight_decay": 0.0},
    ]
    optimizer_class = {"adam": torch.optim.Adam, "adamw": torch.optim.AdamW}[config.name]
    optimizer: torch.optim.Optimizer = optimizer_class(
        [group for group in groups if group["params"]],
        lr=config.learning_rate,
        betas=config.betas,
        eps=config.eps,
        fused=True,
    )
    return optimizer


def learning_rate_factor(update: int, config: ScheduleConfig, *, total_updates: int | None) -> float:
    """The factor on the configured learning rate at this update (0 = first).

    Linear warm-up to 1 in `warmup_updates`, then: `inverse_sqrt` falls as sqrt(warmup / update) (Vaswani et al. 2017,
    section 5.3); `cosine` falls to `final_ratio` at `total_updates` (Loshchilov and Hutter 2017, without restarts);
    `trapezoid` stays at 1 until the last `cooldown` of all updates, in which it falls linearly to `final_ratio` (Hägele
    et al. 2024); `constant` and `plateau` stay at 1 (the plateau's own factor, which depends on scores, is separate).

    Raises:
        UsageError: `cosine` or `trapezoid` without a known end of training.
    """
    warmup = config.warmup_updates
    if update < warmup:
        return (update + 1) / warmup
    if config.name == "inverse_sqrt":
        return math.sqrt(max(warmup, 1) / max(update, 1))
    if config.name not in FALLING:
        return 1.0
    if total_updates is None:
        raise UsageError(
            f"train.schedule.name={config.name!r}: needs to know when training ends;"
            " set train.max_epochs or train.max_updates, or use 'inverse_sqrt', 'plateau' or 'constant'"
        )
    if config.name == "cosine":
        share = 0.5 * (1.0 + math.cos(math.pi * min(1.0, (update - warmup) / max(1, total_updates - warmup))))
    else:
        share = min(1.0, max(0.0, total_updates - update) / max(1.0, config.cooldown * total_updates))
    return config.final_ratio + (1.0 - config.final_ratio) * share


@dataclass
class Plateau:
    """The state of the plateau schedule, which lowers the learning rate when the score has not improved for a while."""

    factor: float = 1.0
    num_without_better: int = 0

    def record(self, is_better: bool, config: ScheduleConfig) -> None:
        """Record a validation."""
        if config.name != "plateau":
            return
        self.num_without_better = 0 if is_better else self.num_without_better + 1
        if self.num_without_better > config.patience:
            self.factor *= config.factor
            self.num_without_better = 0


def set_learning_rate(optimizer: torch.optim.Optimizer, learning_rate: float) -> None:
    """Set the learning rate of every parameter group."""
    for group in optimizer.param_groups:
        group["lr"] = learning_rate


def clip_gradients(parameters: Sequence[nn.Parameter], clip_norm: float | None) -> Tensor:
    """Scale all gradients so that their joint L2 norm is at most `clip_norm` (None: no clipping). Returns the norm
    before clipping."""
    if clip_norm is None:
        return nn.utils.get_total_norm([parameter.grad for parameter in parameters if parameter.grad is not None])
    return nn.utils.clip_grad_norm_(parameters, clip_norm)


class WeightAverage:
    """The exponential moving average of the weights: average <- d * average + (1 - d) * weights after each update.

    The decay d starts low, as min(decay, (1 + n) / (10 + n)) at update n (0 = first), so that the random start is soon
    forgotten.
    """

    def __init__(self, model: nn.Module, decay: float) -> None:
        self.decay = decay
        self._weights = list(model.parameters())
        self.names = [name for name, _ in model.named_parameters()]
        self.average = [weight.detach().clone() for weight in self._weights]

    @torch.no_grad()
    def update(self, update: int) -> None:
        """Move the average toward the weights after the update of this index (0 = first)."""
        decay = min(self.decay, (1 + update) / (10 + update))
        torch._foreach_lerp_(self.average, [weight.detach() for weight in self._weights], 1.0 - decay)

    @contextmanager
    def swapped_in(self) -> Iterator[None]:
        """Use the average as the model's weights inside the block; restore the weights, bit for bit, afterwards."""
        backup = [weight.detach().clone() for weight in self._weights]
        self._fill(self.average)
        try:
            yield
        finally:
            self._fill(backup)

    @torch.no_grad()
    def _fill(self, values: Sequence[Tensor]) -> None:
        for weight, value in zip(self._weights, values, strict=True):
            weight.copy_(value)

    @torch.no_grad()
    def restart(self) -> None:
        """Begin again with the weights as they are now."""
        for average, weight in zip(self.average, self._weights, strict=True):
            average.copy_(weight)

    def state_dict(self) -> dict[str, Tensor]:
        """The average by parameter name."""
        return dict(zip(self.names, self.average, strict=True))

    @torch.no_grad()
    def load_state_dict(self, state: dict[str, Tensor]) -> None:
        """Restore a saved average."""
        for name, average in zip(self.names, self.average, strict=True):
            average.copy_(state[name])
