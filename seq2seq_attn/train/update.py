"""One update: the micro-batches' gradients summed over tokens, clipped, applied; or skipped when not finite."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor, nn

from seq2seq_attn.config import TrainConfig
from seq2seq_attn.data.batch import Batch, rounded_up
from seq2seq_attn.model.seq2seq import Seq2Seq
from seq2seq_attn.run_dir import REVERSE
from seq2seq_attn.runtime.memory import explain_memory_error
from seq2seq_attn.runtime.precision import Precision, autocast, build_scaler
from seq2seq_attn.train import checkpoint
from seq2seq_attn.train.batches import UpdateBatches
from seq2seq_attn.train.distributed import ALONE, Group
from seq2seq_attn.train.graphs import POSITIONS, ROWS, GraphedPass, Pass
from seq2seq_attn.train.loss import batch_loss
from seq2seq_attn.train.objectives.base import Objective
from seq2seq_attn.train.optim import WeightAverage, build_optimizer, clip_gradients, set_learning_rate

UpdateKind = Literal["applied", "overflow", "non_finite"]


@dataclass(frozen=True)
class UpdateResult:
    """The outcome of an update. `applied`: the weights changed; `overflow`: fp16 gradients overflowed, as happens while
    the scaler searches for its scale; `non_finite`: the loss or a gradient is not finite, or the update left weights
    that are not (`Updater.has_finite_weights`). Apart from such weights, the last two skip the update."""

    kind: UpdateKind
    num_tokens: int
    loss_sum: float
    """the translation's loss, summed over target tokens"""
    nll_sum: float
    """without label smoothing, in nats"""
    gradient_norm: float
    """norm of the first model's gradient, before clipping"""
    terms: Mapping[str, tuple[float, float]]
    """for each objective, and for the loss of the reverse model, the sum of its terms and their count"""


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
        """`objectives`: those that `config` names, built for this model. `reverse`: the model of the other direction,
        if an objective needs it. `build_graphed`: turns a pass into one that replays graphs; None: CUDA graphs if
        config and device allow."""
        self.model = model
        self.reverse = reverse
        self._trained = model if reverse is None else nn.ModuleDict({"model": model, REVERSE: reverse})
        self.average = WeightAverage(self._trained, decay) if (decay := config.optimizer.average_decay) else None
        self._config = config
        self.device = device
        self.precision = precision
        self.group = group
        self._objectives = objectives or {}
        self._configured = {name: objective.weight for name, objective in config.objectives.items()}
        if reverse is not None:
            self._configured[REVERSE] = 1.0
        self._weights = self._configured
        self._optimizer = build_optimizer(self._trained, config.optimizer)
        self._scaler = build_scaler(precision, device)
        # not with a scaler: fp16 is for GPUs without bf16, where graphs are untested
        if build_graphed is None and config.cuda_graphs and device.type == "cuda" and self._scaler is None:
            build_graphed = GraphedPass
        self._graphed = build_graphed(self._run, device) if build_graphed else None

    def prepare(self, batch: Batch) -> Batch:
        """Prepare a batch ahead of time, in another thread."""
        if self._graphed:
            batch = rounded_up(batch, rows=ROWS, positions=POSITIONS)
        return batch.pin_memory() if self.device.type == "cuda" else batch

    def train_step(
        self,
        batches: UpdateBatches,
        *,
        update: int,
        learning_rate: float,
        teacher_forcing_ratio: float,
        objective_weights: Mapping[str, float] | None = None,
    ) -> UpdateResult:
        """Make one update. The gradient is that of the micro-batches' loss sum, divided by the target tokens of all
        ranks, plus the weighted mean of each objective. Each model's gradient is clipped by its own norm.

        Args:
            batches: the micro-batches of this rank.
            update: its number (0 = first).
            objective_weights: of this update; None: those of the configuration.

        Raises:
            UserError: memory runs out; the message names the setting to lower.
        """
        self._trained.train()
        set_learning_rate(self._optimizer, learning_rate)
        self._weights = {**self._configured, **(objective_weights or {})}
        with self._explain_memory_error():
            counts = self.group.sum(self._counts(batches.batches))
            loss_sums = self._backward(batches, teacher_forcing_ratio, counts)
            self.group.sum_gradients(_trained(self._trained))
            if self._scaler:
                self._scaler.unscale_(self._optimizer)  # clipping needs the unscaled gradients
            norms = self._clip()
            # the only synchronization with the device; the norms are the same on all ranks
            values = torch.cat([loss_sums, norms]).tolist()
            sums, norm_values = self.group.sum(values[: len(loss_sums)]), values[len(loss_sums) :]
            is_finite = all(map(math.isfinite, [*sums, *norm_values]))
            is_overflow = self._scaler is not None and math.isfinite(sums[0]) and self._scaler.get_scale() > 1.0
            self._apply(update, is_finite)
        kind: UpdateKind = "applied" if is_finite else "overflow" if is_overflow else "non_finite"
        if is_finite and not self.has_finite_weights():
            kind = "non_finite"
        loss_sum, nll_sum, *term_sums = sums
        terms = dict(zip(self._weights, zip(term_sums, counts, strict=True), strict=True))
        return UpdateResult(kind, batches.num_tokens, loss_sum, nll_sum, norm_values[0], terms)

    @torch.no_grad()
    def has_finite_weights(self) -> bool:
        """Whether training can go on: weights that are not finite stay so. (The norm of weights above 1e19 is not.)"""
        return bool(nn.utils.get_total_norm(self._trained.parameters()).isfinite())

    def _explain_memory_error(self) -> AbstractContextManager[None]:
        batch = self._config.batch
        return explain_memory_error(
            f"train.batch.size={batch.size} {batch.unit}",
            f"try --set train.batch.size={max(1, batch.size // 2)} --set train.batch.accumulate={2 * batch.accumulate} "
            "(the same update from smaller pieces)",
        )

    def _counts(self, batches: Sequence[Batch]) -> list[int]:
        """The number of terms in these batches: a count per objective, then the source tokens of the reverse model's
        loss."""
        counts = [sum(objective.count(batch) for batch in batches) for objective in self._objectives.values()]
        if self.reverse is not None:
            counts.append(sum(int(batch.source.lengths_B.sum()) for batch in batches))
        return counts

    def _clip(self) -> Tensor:
        """Clip the gradients of each model; their norms before, in float64."""
        models = [self.model] if self.reverse is None else [self.model, self.reverse]
        norms = [clip_gradients(_trained(model), self._config.optimizer.clip_norm) for model in models]
        return torch.stack(norms).double()

    def _backward(self, batches: UpdateBatches, ratio: float, counts: Sequence[float]) -> Tensor:
        """Loss sum, nll sum and term sums of this rank's share; the gradients are in place."""
        self._optimizer.zero_grad(set_to_none=self._graphed is None)
        sums = torch.zeros(2 + len(counts), dtype=torch.float64, device=self.device)
        for batch in batches.batches:
            if self._graphed:
                sums += self._graphed(batch, batches.num_tokens, ratio)
            else:
                sums += self._run(batch.to(self.device), batches.num_tokens, ratio, counts)
        return sums

    def _run(self, batch: Batch, num_tokens: int | Tensor, ratio: float, counts: Sequence[float] = ()) -> Tensor:
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
        for weight, term, count in zip(self._weights.values(), loss.terms, counts, strict=True):
            mean = mean + term * (weight / max(count, 1.0))
        torch.autograd.backward(self._scaler.scale(mean) if self._scaler else mean)
        return torch.stack([tensor.detach().double() for tensor in (loss.loss_sum, loss.nll_sum, *loss.terms)])

    def _apply(self, update: int, is_finite: bool) -> None:
        if is_finite:
            if self._scaler:
                self._scaler.step(self._optimizer)
            else:
                self._optimizer.step()
            if self.average:
                self.average.update(update)
        if self._scaler:
            self._scaler.update()

    def tensors(self) -> dict[str, Tensor]:
        """The tensors that a resume needs."""
        tensors = checkpoint.model_tensors(self._trained) | checkpoint.optimizer_tensors(self._optimizer)
        if self.average:
            tensors |= {f"average/{name}": tensor for name, tensor in self.average.state_dict().items()}
        return tensors

    def values(self) -> dict[str, Any]:
        """The plain values that a resume needs."""
        return {"scaler": self._scaler.state_dict() if self._scaler else None}

    def load(self, tensors: dict[str, Tensor], values: dict[str, Any]) -> None:
        """Restore a saved state.

        Raises:
            UserError: the state belongs to another model.
        """
        checkpoint.set_model_tensors(self._trained, tensors)
        checkpoint.set_optimizer_tensors(self._optimizer, tensors)
        if self.average:
            saved = {name.removeprefix("average/"): t for name, t in tensors.items() if name.startswith("average/")}
            self.average.load_state_dict(saved)
        if self._scaler and values["scaler"]:
            self._scaler.load_state_dict(values["scaler"])


def _trained(model: nn.Module) -> list[nn.Parameter]:
    return [parameter for parameter in model.parameters() if parameter.requires_grad]
