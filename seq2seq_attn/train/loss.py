"""The loss of a batch: the output's loss and the terms of the configured objectives."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn

from seq2seq_attn.config import Config
from seq2seq_attn.data.batch import Batch, swapped
from seq2seq_attn.errors import UsageError
from seq2seq_attn.model.build import source_attention
from seq2seq_attn.model.output.base import Outputs
from seq2seq_attn.model.seq2seq import Seq2Seq
from seq2seq_attn.model.variants import Axis, Missing, build_variant
from seq2seq_attn.train.objectives.base import Objective

OBJECTIVE = Axis(
    "seq2seq_attn.train.objectives", "train.objectives.{name}", "train.objectives.{name}.options", "Objective"
)

_NO_DRAWS = Missing(
    "reads which source positions the attention has drawn: set model.attention.name=hard and "
    "model.attention.options.estimator=reinforce"
)
_NO_LINKS = Missing(
    "reads word alignments of the training pairs: set data.links to ibm1, to a Pharaoh file, or, with "
    "data.corpus=captions, to gold"
)


class Loss(NamedTuple):
    """Sums over a batch, in nats."""

    loss_sum: Tensor
    """0-d, over target tokens, label-smoothed, with its graph"""
    nll_sum: Tensor
    """0-d, over target tokens, not smoothed, detached"""
    terms: Sequence[Tensor]
    """0-d, the term of each objective, then the loss sum of the reverse model, if there is one; with graphs"""


def build_objectives(config: Config, model: Seq2Seq) -> dict[str, Objective]:
    """The objectives by name.

    Raises:
        UsageError: a name or an option is unknown, an option has the wrong type, the model or the data lacks what an
            objective reads, or an objective has parameters.
    """
    attention = model.decoder.attention
    offered = {
        "source_attention": source_attention(config.model, attention, alternative="leave the objective out"),
        "drawing_attention": attention if attention.draws_positions else _NO_DRAWS,
        "links": config.data.links or _NO_LINKS,
    }
    objectives = {
        name: build_variant(OBJECTIVE, name, objective.options, **offered)
        for name, objective in config.train.objectives.items()
    }
    for name, objective in objectives.items():
        if isinstance(objective, nn.Module) and any(True for _ in objective.parameters()):
            raise UsageError(
                f"train.objectives.{name}: has parameters, which no optimizer would update; put them into the model, "
                "for example into the attention"
            )
    return objectives


def batch_loss(
    model: Seq2Seq,
    batch: Batch,
    *,
    label_smoothing: float = 0.0,
    teacher_forcing_ratio: float = 1.0,
    objectives: Sequence[Objective] = (),
    reverse: Seq2Seq | None = None,
) -> Loss:
    """Run the model on a batch and sum its loss. Dropout and fed-back tokens draw from the global generator. `reverse`:
    the model of the other direction, if an objective needs it."""
    outputs = model(batch, teacher_forcing_ratio)
    loss = model.output.loss(outputs, batch, label_smoothing=label_smoothing)
    of_reverse = []
    if reverse is not None:
        outputs, reverse_sum = with_reverse(reverse, outputs, batch, label_smoothing=label_smoothing)
        of_reverse.append(reverse_sum)
    terms = [objective.term(outputs, batch) for objective in objectives]
    return Loss(loss.loss_sum, loss.nll_sum, terms + of_reverse)


def with_reverse(reverse: Seq2Seq, outputs: Outputs, batch: Batch, *, label_smoothing: float) -> tuple[Outputs, Tensor]:
    """The outputs with the attention weights of the reverse model, and its loss sum over source tokens. The reverse
    model draws from a copy of the global generator, so that it does not change the first model's random numbers."""
    device, other = outputs.features_NF.device, swapped(batch)
    with torch.random.fork_rng(devices=[device] if device.type == "cuda" else []):
        reverse_outputs = reverse(other)
        loss = reverse.output.loss(reverse_outputs, other, label_smoothing=label_smoothing)
    return outputs._replace(reverse_weights_SBT=reverse_outputs.weights_TBS), loss.loss_sum
