"""One update: the micro-batches' gradients summed over tokens, clipped, applied; or skipped when
not finite."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn

from seq2seq_attn.config import OptimizerConfig, TrainConfig
from seq2seq_attn.data.batch import Batch, rounded_up
from seq2seq_attn.model.seq2seq import Seq2Seq
from seq2seq_attn.run import REVERSE
from seq2seq_attn.runtime.device import Precision, autocast, build_scaler
from seq2seq_attn.runtime.memory import explain_memory_error
from seq2seq_attn.train.batches import UpdateBatches
from seq2seq_attn.train.distributed import ALONE, Group
from seq2seq_attn.train.graphs import POSITIONS, ROWS, GraphedPass, Pass
from seq2seq_attn.train.loss import batch_loss
from seq2seq_attn.train.objectives.base import Objective

UpdateKind = Literal["applied", "overflow", "non_finite"]


@dataclass(frozen=True)
class UpdateResult:
    """The outcome of an update. `applied`: the weights changed; `overflow`: fp16 gradients
    overflowed, as happens while the scaler searches for its scale; `non_finite`: the loss or a
    gradient is not finite. The last two skip the update.
    """

    kind: UpdateKind
    num_tokens: int
    loss_sum: float
    """the translation's loss, summed over target tokens"""
    nll_sum: float
    """without label smoothing, in nats"""
    gradient_norm: float
    """norm of the first model's gradient, before clipping"""
    terms: Mapping[str, tuple[float, float]]
    """for each objective, and for the loss of the reverse model, the sum of its terms and their
    count"""


class Updater:
    """Makes updates, and owns what changes with them: models, optimizer, scaler, weight average."""

    def __init__(
        self,
        model: Seq2Seq,
        config: TrainConfig,
        *,
        device: torch.device,
        precision: Precision,
        group: Group = ALONE,
        objectives: Mapping[str, Objective] | None = None,
        reverse: Seq2Seq | None = None,
        build_graphed: Callable[[Pass, torch.device], GraphedPass] | None = None,
    ) -> None:
        """`objectives`: those that `config` names, built for this model. `reverse`: the model of
        the other direction, if an objective needs it. `build_graphed`: turns a pass into one that
        replays graphs; None: CUDA graphs if config and device allow."""
        self.model = model
        self.reverse = reverse
        self.trained = (
            model if reverse is None else nn.ModuleDict({"model": model, REVERSE: reverse})
        )
        self.average = (
            WeightAverage(self.trained, decay)
            if (decay := config.optimizer.average_decay)
            else None
        )
        self.optimizer = build_optimizer(self.trained, config.optimizer)
        self.scaler = build_scaler(precision, device)
        self.device = device
        self.precision = precision
        self.group = group
        self._config = config
        self._objectives = objectives or {}
        self._weights = {name: objective.weight for name, objective in config.objectives.items()}
        if reverse is not None:
            self._weights[REVERSE] = 1.0
        # not with a scaler: fp16 is for GPUs without bf16, where graphs are untested
        if (
            build_graphed is None
            and config.cuda_graphs
            and device.type == "cuda"
            and self.scaler is None
        ):
            build_graphed = GraphedPass
        self._graphed = build_graphed(self._run, device) if build_graphed else None

    def prepare(self, batch: Batch) -> Batch:
        """Prepare a batch ahead of time, in another thread."""
        if self._graphed:
            batch = rounded_up(batch, rows=ROWS, positions=POSITIONS)
        return batch.pin_memory() if self.device.type == "cuda" else batch

    def apply_update(
        self,
        batches: UpdateBatches,
        *,
        update: int,
        learning_rate: float,
        teacher_forcing_ratio: float,
        objective_weights: Mapping[str, float] | None = None,
    ) -> UpdateResult:
        """Make one update. The gradient is that of the micro-batches' loss sum, divided by the
        target tokens of all ranks, plus the weighted mean of each objective. Each model's gradient
        is clipped by its own norm.

        Args:
            batches: the micro-batches of this rank.
            update: its number (0 = first).
            objective_weights: of this update; None: those of the configuration.

        Raises:
            UserError: memory runs out; the message names the setting to lower.
        """
        self.trained.train()
        for parameters in self.optimizer.param_groups:
            parameters["lr"] = learning_rate
        weights = self._weights | dict(objective_weights or {})
        size, unit, accumulate = (
            self._config.batch.size,
            self._config.batch.unit,
            self._config.batch.accumulate,
        )
        smaller = f"--set train.batch.size={max(1, size // 2)} --set train.batch.accumulate={2 * accumulate}"
        with explain_memory_error(
            f"train.batch.size={size} {unit}",
            f"try {smaller} (the same update from smaller pieces)",
        ):
            self.optimizer.zero_grad(set_to_none=self._graphed is None)
            counts = self.group.sum(self._counts(batches.batches))
            factors = [
                weight / max(count, 1.0)
                for weight, count in zip(weights.values(), counts, strict=True)
            ]
            sums = torch.zeros(2 + len(counts), dtype=torch.float64, device=self.device)
            for batch in batches.batches:
                if self._graphed:
                    sums += self._graphed(batch, batches.num_tokens, teacher_forcing_ratio)
                else:
                    sums += self._run(
                        batch.to(self.device), batches.num_tokens, teacher_forcing_ratio, factors
                    )
            kind, gradient_norm, (loss_sum, nll_sum, *term_sums) = self._apply(update, sums)
        terms = dict(zip(weights, zip(term_sums, counts, strict=True), strict=True))
        return UpdateResult(kind, batches.num_tokens, loss_sum, nll_sum, gradient_norm, terms)

    def _counts(self, batches: Sequence[Batch]) -> list[int]:
        """The number of terms in these batches: a count per objective, then the source tokens of
        the reverse model's loss."""
        counts = [
            sum(objective.count(batch) for batch in batches)
            for objective in self._objectives.values()
        ]
        if self.reverse is not None:
            counts.append(sum(int(batch.source.lengths_B.sum()) for batch in batches))
        return counts

    def _run(
        self, batch: Batch, num_tokens: int | Tensor, ratio: float, factors: Sequence[float] = ()
    ) -> Tensor:
        """Forward and backward pass of a micro-batch; its loss sum, nll sum and term sums."""
        with autocast(self.precision, self.device):
            loss = batch_loss(
                self.model,
                batch,
                label_smoothing=self._config.label_smoothing,
                teacher_forcing_ratio=ratio,
                objectives=list(self._objectives.values()),
                reverse=self.reverse,
            )
        mean = loss.loss_sum / num_tokens
        for factor, term in zip(factors, loss.terms, strict=True):
            mean = mean + term * factor
        torch.autograd.backward(self.scaler.scale(mean) if self.scaler else mean)
        return torch.stack(
            [tensor.detach().double() for tensor in (loss.loss_sum, loss.nll_sum, *loss.terms)]
        )

    def _apply(self, update: int, sums: Tensor) -> tuple[UpdateKind, float, list[float]]:
        """Clip the gradients of all ranks and update the weights, if all is finite. Returns the
        kind of the update, the norm of the first model's gradient, and the sums over ranks."""
        self.group.sum_gradients(_trainable(self.trained))
        if self.scaler:
            self.scaler.unscale_(self.optimizer)  # clipping needs the unscaled gradients
        models = [self.model] if self.reverse is None else [self.model, self.reverse]
        clip_norm = self._config.optimizer.clip_norm or math.inf
        norms = [
            nn.utils.clip_grad_norm_(_trainable(model), clip_norm) for model in models
        ]  # before clipping
        # the only synchronization with the device; the norms are the same on all ranks
        values = torch.cat([sums, torch.stack(norms).double()]).tolist()
        sum_values, norm_values = self.group.sum(values[: len(sums)]), values[len(sums) :]
        is_finite = all(map(math.isfinite, [*sum_values, *norm_values]))
        is_overflow = (
            self.scaler is not None
            and math.isfinite(sum_values[0])
            and self.scaler.get_scale() > 1.0
        )
        if is_finite:
            if self.scaler:
                self.scaler.step(self.optimizer)
            else:
                self.optimizer.step()
            if self.average:
                self.average.update(update)
        if self.scaler:
            self.scaler.update()
        kind: UpdateKind = "applied" if is_finite else "overflow" if is_overflow else "non_finite"
        return kind, norm_values[0], sum_values

    @torch.no_grad()
    def has_finite_weights(self) -> bool:
        """Whether training can go on: weights that are not finite stay so. (The norm of weights
        above 1e19 is not.)"""
        return bool(nn.utils.get_total_norm(self.trained.parameters()).isfinite())


def _trainable(model: nn.Module) -> list[nn.Parameter]:
    return [parameter for parameter in model.parameters() if parameter.requires_grad]


def build_optimizer(model: nn.Module, config: OptimizerConfig) -> torch.optim.Optimizer:
    """Adam or AdamW over the model's parameters, fused if torch supports it on the device. Weight
    decay does not apply to vectors, such as biases."""
    parameters = _trainable(model)
    groups = [
        {"params": [p for p in parameters if p.ndim >= 2], "weight_decay": config.weight_decay},
        {"params": [p for p in parameters if p.ndim < 2], "weight_decay": 0.0},
    ]
    groups = [group for group in groups if group["params"]]
    optimizer_class: type[torch.optim.Adam] = {
        "adam": torch.optim.Adam,
        "adamw": torch.optim.AdamW,
    }[config.name]
    return optimizer_class(
        groups, lr=config.learning_rate, betas=config.betas, eps=config.eps, fused=True
    )


class WeightAverage:
    """The exponential moving average of the weights: average <- d * average + (1 - d) * weights
    after each update.

    The decay d starts low, as min(decay, (1 + n) / (10 + n)) at update n (0 = first), so that the
    random start is soon forgotten.
    """

    def __init__(self, model: nn.Module, decay: float) -> None:
        self._decay = decay
        self._model_weights = [weight.detach() for weight in model.parameters()]
        self.weights = {name: weight.detach().clone() for name, weight in model.named_parameters()}
        """the average by parameter name"""

    def update(self, update: int) -> None:
        """Move the average toward the weights after the update of this index (0 = first)."""
        decay = min(self._decay, (1 + update) / (10 + update))
        torch._foreach_lerp_(list(self.weights.values()), self._model_weights, 1.0 - decay)

    @contextmanager
    def swapped_in(self) -> Iterator[None]:
        """Use the average as the model's weights inside the block; restore the weights, bit for
        bit, afterwards."""
        backup = [weight.clone() for weight in self._model_weights]
        torch._foreach_copy_(self._model_weights, list(self.weights.values()))
        try:
            yield
        finally:
            torch._foreach_copy_(self._model_weights, backup)

    def restart(self) -> None:
        """Begin again with the weights as they are now."""
        torch._foreach_copy_(list(self.weights.values()), self._model_weights)
