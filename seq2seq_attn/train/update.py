"""Make an update: sum the gradients of the micro-batches over target tokens, clip the gradients,
and change the weights. An update that is not finite is skipped."""

import math
import random
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, Literal, NamedTuple

import torch
from torch import Tensor, nn

from seq2seq_attn.config import Config, OptimizerConfig, TrainConfig
from seq2seq_attn.data.batch import Batch, rounded_up
from seq2seq_attn.data.store import PreparedCorpus
from seq2seq_attn.model.build import build_model
from seq2seq_attn.model.seq2seq import Seq2Seq
from seq2seq_attn.run import REVERSE, Run
from seq2seq_attn.runtime.device import (
    Precision,
    autocast,
    build_scaler,
    training_precision,
    tune_float32,
)
from seq2seq_attn.runtime.memory import explain_memory_error
from seq2seq_attn.train.batches import UpdateBatches
from seq2seq_attn.train.distributed import ALONE, Group, local_device
from seq2seq_attn.train.graphs import POSITIONS, ROWS, GraphedPass
from seq2seq_attn.train.loss import batch_loss, build_objectives
from seq2seq_attn.train.objectives.base import Objective
from seq2seq_attn.train.reverse import build_reverse

Outcome = Literal["applied", "overflow", "non_finite"]


class UpdateResult(NamedTuple):
    """The outcome of an update. The gradient norm is equal on all ranks; the other numbers are sums
    over all ranks.

    An update trains one or two models. The first model translates from source to target. If an
    objective needs a reverse model, the second model translates from target to source.
    """

    outcome: Outcome
    """`applied` if the weights changed. The update was skipped in the other two cases: `overflow`
    if fp16 gradients overflowed, as happens while the scaler searches for its scale; `non_finite`
    if the loss or a gradient is not finite."""
    num_tokens: int
    """number of target tokens, EOS included"""
    loss_sum: float
    """loss of the first model with label smoothing, without objectives, summed over target
    tokens"""
    nll_sum: float
    """negative log-likelihood of the first model in nats, without label smoothing, summed over
    target tokens"""
    gradient_norm: float
    """norm of the gradient of the first model, before clipping"""
    terms: Mapping[str, tuple[float, float]]
    """by name of the objective, the sum of its terms and the number of its terms; under the name
    `REVERSE`, the loss sum of the reverse model and its number of source tokens"""


@dataclass(eq=False)
class Updater:
    """Makes updates. It holds all objects that an update changes: models, optimizer, loss scaler
    and weight average."""

    model: Seq2Seq
    config: TrainConfig
    _: KW_ONLY
    device: torch.device
    precision: Precision
    group: Group = ALONE
    objectives: Mapping[str, Objective] = field(default_factory=dict)
    """the objectives that `config` names, built for this model"""
    reverse: Seq2Seq | None = None
    """the reverse model, if an objective needs it"""

    def __post_init__(self) -> None:
        """Build the optimizer, the loss scaler and the weight average."""
        config = self.config
        self.trained: nn.Module = self.model
        # `_weights`, `_counts` and `BatchLoss.terms` have the same order: the objectives as
        # configured, then the reverse model. Values are matched by this order.
        self._weights = {name: objective.weight for name, objective in config.objectives.items()}
        if self.reverse is not None:
            self.trained = nn.ModuleDict({"model": self.model, REVERSE: self.reverse})
            self._weights[REVERSE] = 1.0
        decay = config.optimizer.average_decay
        self.average = WeightAverage(self.trained, decay) if decay else None
        self.optimizer = build_optimizer(self.trained, config.optimizer)
        self.scaler = build_scaler(self.precision, self.device)
        # A scaler is used with fp16, on GPUs without bf16, where graphs are untested.
        uses_graphs = config.cuda_graphs and self.device.type == "cuda" and self.scaler is None
        self.graphed = GraphedPass(self.run_pass, self.device) if uses_graphs else None

    def prepare(self, batch: Batch) -> Batch:
        """Pad a batch for graphs, and pin the batch for the transfer to a GPU. A second thread
        calls this method ahead of time."""
        if self.graphed:
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
        """Make one update.

        The update follows the gradient of a sum over the micro-batches of all ranks. The first
        summand is the loss per target token. Each objective adds the mean of its terms, multiplied
        by its weight. A reverse model adds its loss per source token. The gradient of each model is
        clipped by its norm.

        Args:
            batches: the micro-batches of the update, of which this rank has a share.
            update: index of the update; the first update has index 0.
            objective_weights: weight of each objective in this update; the default is the
                configured weight.

        Raises:
            UserError: memory runs out; the message names the setting to lower.
        """
        self.trained.train()
        for parameters in self.optimizer.param_groups:
            parameters["lr"] = learning_rate
        weights = self._weights | dict(objective_weights or {})
        batch = self.config.batch
        advice = (
            f"try --set train.batch.size={max(1, batch.size // 2)} --set "
            f"train.batch.accumulate={2 * batch.accumulate} (the same update from smaller pieces)"
        )
        with explain_memory_error(f"train.batch.size={batch.size} {batch.unit}", advice):
            self.optimizer.zero_grad(set_to_none=self.graphed is None)
            counts = self.group.sum(self._counts(batches.batches))
            sums = self._backward(batches, teacher_forcing_ratio, list(weights.values()), counts)
            outcome, gradient_norm, totals = self._apply(update, sums)
        loss_sum, nll_sum, *term_sums = totals
        terms = {}
        # The sums and counts have the order of `weights` (see `__post_init__`).
        for name, term_sum, count in zip(weights, term_sums, counts, strict=True):
            terms[name] = (term_sum, count)
        return UpdateResult(outcome, batches.num_tokens, loss_sum, nll_sum, gradient_norm, terms)

    def _backward(
        self,
        batches: UpdateBatches,
        ratio: float,
        weights: Sequence[float],
        counts: Sequence[float],
    ) -> Tensor:
        """Add the gradients of the micro-batches of this rank to the parameters. Return [loss sum,
        nll sum, *sums of terms] in float64. The sums of terms have the order of `weights`."""
        sums = torch.zeros(2 + len(counts), dtype=torch.float64, device=self.device)
        pairs = zip(weights, counts, strict=True)
        factors = [weight / max(count, 1.0) for weight, count in pairs]
        for batch in batches.batches:
            if self.graphed:  # `check_graphs` rejects objectives, so there are no factors
                sums += self.graphed(batch, batches.num_tokens, ratio)
            else:
                sums += self.run_pass(batch.to(self.device), batches.num_tokens, ratio, factors)
        return sums

    def _counts(self, batches: Sequence[Batch]) -> list[int]:
        """Return the number of terms of each objective in the batches. If there is a reverse model,
        the number of source tokens follows, over which the loss of the reverse model is summed."""
        counts = []
        for objective in self.objectives.values():
            counts.append(sum(objective.count(batch) for batch in batches))
        if self.reverse is not None:
            counts.append(sum(int(batch.source.lengths_B.sum()) for batch in batches))
        return counts

    def run_pass(
        self, batch: Batch, num_tokens: int | Tensor, ratio: float, factors: Sequence[float] = ()
    ) -> Tensor:
        """Run the forward and backward pass of a micro-batch. Return [loss sum, nll sum, *sums of
        terms] in float64.

        `factors` has a factor for each sum of terms, in the order of `BatchLoss.terms`. The default
        is only for models without objectives, which have no terms. CUDA graphs use the default.
        """
        with autocast(self.precision, self.device):
            loss = batch_loss(
                self.model,
                batch,
                label_smoothing=self.config.label_smoothing,
                teacher_forcing_ratio=ratio,
                objectives=list(self.objectives.values()),
                reverse=self.reverse,
            )
        mean = loss.loss_sum / num_tokens
        for factor, term in zip(factors, loss.terms, strict=True):
            mean = mean + term * factor
        torch.autograd.backward(self.scaler.scale(mean) if self.scaler else mean)
        return torch.stack(
            [tensor.detach().double() for tensor in (loss.loss_sum, loss.nll_sum, *loss.terms)]
        )

    def _apply(self, update: int, sums: Tensor) -> tuple[Outcome, float, list[float]]:
        """Sum the gradients over ranks, clip them, and update the weights if all values are finite.
        Return the outcome, the gradient norm of the first model, and the sums over ranks."""
        self.group.sum_gradients(_trainable(self.trained))
        if self.scaler:
            self.scaler.unscale_(self.optimizer)  # clipping needs the unscaled gradients
        clip_norm = self.config.optimizer.clip_norm or math.inf
        # `clip_grad_norm_` returns the norm before clipping.
        norms = [nn.utils.clip_grad_norm_(_trainable(self.model), clip_norm)]
        if self.reverse is not None:
            norms.append(nn.utils.clip_grad_norm_(_trainable(self.reverse), clip_norm))
        # One transfer reads all values: it is the only synchronization with the device. Norms are
        # equal on all ranks, so they are not summed.
        values = torch.cat([sums, torch.stack(norms).double()]).tolist()
        sum_values = self.group.sum(values[: len(sums)])
        norm_values = values[len(sums) :]
        outcome: Outcome = "applied"
        if not all(math.isfinite(value) for value in [*sum_values, *norm_values]):
            outcome = "non_finite"
            # If the loss is finite, the gradients overflowed by the scale, which the scaler lowers.
            # At a scale of 1 or less, the gradients themselves are not finite.
            if self.scaler and math.isfinite(sum_values[0]) and self.scaler.get_scale() > 1.0:
                outcome = "overflow"
        if outcome == "applied":
            if self.scaler:
                self.scaler.step(self.optimizer)
            else:
                self.optimizer.step()
            if self.average:
                self.average.update(update)
        if self.scaler:
            self.scaler.update()
        return outcome, norm_values[0], sum_values

    @torch.no_grad()
    def has_finite_weights(self) -> bool:
        """Return whether all weights are finite. No update makes a weight finite again, so training
        cannot continue without finite weights. (Weights above 1e19 count as not finite, because
        their norm overflows.)"""
        return bool(nn.utils.get_total_norm(self.trained.parameters()).isfinite())

    @contextmanager
    def use_average(self) -> Iterator[None]:
        """Use the weight average as the weights inside the block, and restore the weights exactly
        after the block. Without a weight average, keep the weights."""
        if self.average is None:
            yield
            return
        weights = [weight.detach() for weight in self.trained.parameters()]
        backup = [weight.clone() for weight in weights]
        torch._foreach_copy_(weights, list(self.average.weights.values()))
        try:
            yield
        finally:
            torch._foreach_copy_(weights, backup)

    def save_best(self, run: Run, about: Mapping[str, Any], scores: Mapping[str, float]) -> None:
        """Write the current weights as the best model of a run, with values that describe it and
        the scores of the first model."""
        run.save_best(self.model.state_dict(), {**about, **scores})
        if self.reverse is not None:
            run.reverse.save_best(self.reverse.state_dict(), about)

    def load_best(self, run: Run) -> list[str]:
        """Load the best weights of a run. If this run has no reverse model, the weights of the
        reverse model stay random. Return lines for the log."""
        notes = []
        for model, saved in ((self.model, run), (self.reverse, run.reverse)):
            if model is None:
                continue
            if not saved.model_path.exists():
                notes.append(f"{saved.path}: has no weights; training starts from random weights")
                continue
            best = saved.load_best()
            model.load_state_dict(best.tensors)
            update = best.values["update"]
            notes.append(f"{saved.path}: training starts from its weights (update {update})")
        return notes


def build_updater(config: Config, prepared: PreparedCorpus, group: Group) -> Updater:
    """Build a new model on the device of this rank, with its objectives and its optimizer."""
    device = local_device(config.train.device)
    precision = training_precision(config.train.precision, device)
    tune_float32(precision, device)
    torch.manual_seed(config.seed)
    model = build_model(
        config.model,
        num_source_ids=len(prepared.source_vocab),
        num_target_ids=len(prepared.target_vocab),
        vector_sizes=prepared.source_tokenizer.vector_sizes,
    ).to(device)
    objectives = build_objectives(config, model)
    reverse = build_reverse(config, prepared, objectives, device)
    if not group.is_first:  # ranks share their weights, but draw different dropout masks
        torch.manual_seed(random.Random(f"{config.seed}/rank {group.rank}").getrandbits(63))
    return Updater(
        model,
        config.train,
        device=device,
        precision=precision,
        group=group,
        objectives=objectives,
        reverse=reverse,
    )


def _trainable(model: nn.Module) -> list[nn.Parameter]:
    """Return the parameters that have gradients."""
    return [parameter for parameter in model.parameters() if parameter.requires_grad]


def build_optimizer(model: nn.Module, config: OptimizerConfig) -> torch.optim.Optimizer:
    """Build the fused Adam or AdamW of torch for the parameters of a model. Weight decay does not
    apply to vectors, such as biases."""
    parameters = _trainable(model)
    matrices = [parameter for parameter in parameters if parameter.ndim >= 2]
    vectors = [parameter for parameter in parameters if parameter.ndim < 2]
    groups = [
        {"params": matrices, "weight_decay": config.weight_decay},
        {"params": vectors, "weight_decay": 0.0},
    ]
    optimizer_class = torch.optim.AdamW if config.name == "adamw" else torch.optim.Adam
    return optimizer_class(
        groups, lr=config.learning_rate, betas=config.betas, eps=config.eps, fused=True
    )


class WeightAverage:
    """The exponential moving average of the weights: after each update, average <- d * average + (1
    - d) * weights.

    The decay d starts low: at update n, d is min(decay, (1 + n) / (10 + n)), where the first update
    has index 0. So the random initial weights soon lose their influence.
    """

    def __init__(self, model: nn.Module, decay: float) -> None:
        self._decay = decay
        self._model_weights = [weight.detach() for weight in model.parameters()]
        self.weights = {name: weight.detach().clone() for name, weight in model.named_parameters()}
        """the average by parameter name"""

    def update(self, update: int) -> None:
        """Move the average toward the current weights. `update` is the index of the update that has
        just been applied; the first update has index 0."""
        decay = min(self._decay, (1 + update) / (10 + update))
        torch._foreach_lerp_(list(self.weights.values()), self._model_weights, 1.0 - decay)

    def restart(self) -> None:
        """Restart the average from the current weights."""
        torch._foreach_copy_(list(self.weights.values()), self._model_weights)
