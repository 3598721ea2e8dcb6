"""The optimizer, gradient clipping, and weight averaging."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from seq2seq_attn.config import OptimizerConfig


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
