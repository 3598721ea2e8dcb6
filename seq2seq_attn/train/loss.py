"""The loss of a batch: the output's loss, the terms of the configured objectives, and the loss of
the reverse model."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from torch import Tensor, nn

from seq2seq_attn.config import Config
from seq2seq_attn.data.batch import Batch
from seq2seq_attn.errors import UsageError
from seq2seq_attn.model.build import source_attention
from seq2seq_attn.model.seq2seq import Seq2Seq
from seq2seq_attn.model.variants import Axis, Missing, build_variant
from seq2seq_attn.train.objectives.base import Objective
from seq2seq_attn.train.reverse import ReverseModel

OBJECTIVE = Axis(
    "seq2seq_attn.train.objectives",
    "train.objectives.{name}",
    "train.objectives.{name}.options",
    "Objective",
)


class BatchLoss(NamedTuple):
    """Sums over a batch, in nats."""

    loss_sum: Tensor
    """0-d, over target tokens, label-smoothed, with its graph"""
    nll_sum: Tensor
    """0-d, over target tokens, not smoothed, detached"""
    terms: Sequence[Tensor]
    """0-d, the term of each objective, then the loss sum of the reverse model, if there is one;
    with graphs"""


def build_objectives(config: Config, model: Seq2Seq) -> dict[str, Objective]:
    """The objectives by name. Raises UsageError: a name or an option is unknown, an option has the
    wrong type, the model or the data lacks what an objective reads, or an objective has
    parameters."""
    attention = model.decoder.attention
    offered: dict[str, Any] = {
        "source_attention": source_attention(
            config.model, attention, alternative="leave the objective out"
        ),
        "drawing_attention": attention,
        "links": config.data.links,
    }
    if not attention.draws_positions:
        offered["drawing_attention"] = Missing(
            "reads which source positions the attention has drawn: set model.attention.name=hard "
            "and model.attention.options.estimator=reinforce"
        )
    if not config.data.links:
        offered["links"] = Missing(
            "reads word alignments of the training pairs: set data.links to ibm1, to a Pharaoh "
            "file, or, with data.corpus=captions, to gold"
        )
    objectives = {
        name: build_variant(OBJECTIVE, name, objective.options, **offered)
        for name, objective in config.train.objectives.items()
    }
    for name, objective in objectives.items():
        if isinstance(objective, nn.Module) and any(True for _ in objective.parameters()):
            raise UsageError(
                f"train.objectives.{name}: has parameters, which no optimizer would update; put "
                "them into the model, for example into the attention"
            )
    return objectives


def batch_loss(
    model: Seq2Seq,
    batch: Batch,
    *,
    label_smoothing: float = 0.0,
    teacher_forcing_ratio: float = 1.0,
    objectives: Sequence[Objective] = (),
    reverse: ReverseModel | None = None,
) -> BatchLoss:
    """Run the model on a batch and sum its loss. Dropout and fed-back tokens draw from the global
    generator. `reverse`: the model of the other direction, if an objective needs it."""
    outputs = model(batch, teacher_forcing_ratio)
    loss = model.output.loss(outputs, batch, label_smoothing=label_smoothing)
    reverse_sums = []
    if reverse is not None:
        outputs, reverse_sum = reverse.read(outputs, batch, label_smoothing=label_smoothing)
        reverse_sums.append(reverse_sum)
    terms = [objective.term(outputs, batch) for objective in objectives]
    return BatchLoss(loss.loss_sum, loss.nll_sum, terms + reverse_sums)
