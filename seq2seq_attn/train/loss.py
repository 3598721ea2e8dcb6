"""The loss of a batch: the output's loss and the terms of the configured objectives."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from torch import Tensor

from seq2seq_attn.config import ObjectiveConfig
from seq2seq_attn.data.batch import Batch
from seq2seq_attn.model.seq2seq import Seq2Seq
from seq2seq_attn.model.variants import Axis, build_variant
from seq2seq_attn.train.objectives.base import Objective

OBJECTIVE = Axis(
    "seq2seq_attn.train.objectives", "Objective", "train.objectives.{name}", "train.objectives.{name}.options"
)


class Loss(NamedTuple):
    """Sums over a batch, in nats."""

    loss_sum: Tensor
    """0-d, over target tokens, label-smoothed, with its graph"""
    nll_sum: Tensor
    """0-d, over target tokens, not smoothed, detached"""
    num_tokens: int
    terms: Sequence[Tensor]
    """0-d, of each objective, with its graph"""


def build_objectives(settings: Mapping[str, ObjectiveConfig]) -> dict[str, Objective]:
    """The objectives by name.

    Raises:
        UsageError: a name or an option is unknown, or an option has the wrong type.
    """
    return {name: build_variant(OBJECTIVE, name, one.options) for name, one in settings.items()}


def batch_loss(
    model: Seq2Seq,
    batch: Batch,
    *,
    label_smoothing: float = 0.0,
    teacher_forcing_ratio: float = 1.0,
    objectives: Sequence[Objective] = (),
) -> Loss:
    """Run the model on a batch and sum its loss. Dropout and fed-back tokens draw from the global generator."""
    outputs = model(batch, teacher_forcing_ratio)
    loss = model.output.loss(outputs, batch, label_smoothing=label_smoothing)
    if any(objective.needs_log_probs for objective in objectives):
        outputs = outputs._replace(target_log_probs_N=model.output.target_log_probs(outputs, batch))
    return Loss(*loss, terms=[objective.term(outputs, batch) for objective in objectives])
