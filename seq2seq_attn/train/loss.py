"""The loss of a batch: the loss of the output layer, the terms of the configured objectives, and
the loss of the reverse model."""

from collections.abc import Sequence
from typing import NamedTuple

from torch import Tensor, nn

from seq2seq_attn.config import Config
from seq2seq_attn.data.batch import Batch
from seq2seq_attn.errors import UsageError, UserError
from seq2seq_attn.model.build import find_unmet
from seq2seq_attn.model.seq2seq import Seq2Seq
from seq2seq_attn.model.variants import Axis, build_variant
from seq2seq_attn.run import REVERSE
from seq2seq_attn.train.objectives.base import Objective
from seq2seq_attn.train.reverse import run_swapped

OBJECTIVE = Axis(
    "seq2seq_attn.train.objectives",
    "train.objectives.{name}",
    "train.objectives.{name}.options",
    "seq2seq_attn.train.objectives.base:Objective",
)


class BatchLoss(NamedTuple):
    """Sums over a batch, in nats."""

    loss_sum: Tensor
    """loss with label smoothing, summed over target tokens; 0-d, with its graph"""
    nll_sum: Tensor
    """negative log-likelihood without label smoothing, summed over target tokens; 0-d, detached"""
    terms: Sequence[Tensor]
    """the sum of terms of each objective, then the loss sum of the reverse model if there is a
    reverse model; 0-d tensors with graphs"""


def build_objectives(config: Config, model: Seq2Seq) -> dict[str, Objective]:
    """Return the configured objectives by name.

    Raises:
        UsageError: a name or an option is unknown, an option has the wrong type, the model or the
            data lacks a property that an objective requires, or an objective has parameters.
    """
    if REVERSE in config.train.objectives:
        raise UsageError(
            f"train.objectives.{REVERSE}: the loss of the reverse model has this name; rename the "
            "module"
        )
    unmet = find_unmet(config.model, model.encoder, model.decoder)
    if not config.data.links:
        unmet["links"] = (
            "reads word alignments of the training pairs: set data.links to ibm1, to a Pharaoh "
            "file, or, with data.corpus=captions, to gold"
        )
    objectives = {}
    for name, settings in config.train.objectives.items():
        objective = build_variant(OBJECTIVE, name, settings.options, unmet=unmet)
        if isinstance(objective, nn.Module) and list(objective.parameters()):
            raise UsageError(
                f"train.objectives.{name}: has parameters, which no optimizer would update; put "
                "them into the model, for example into the attention"
            )
        objectives[name] = objective
    return objectives


def batch_loss(
    model: Seq2Seq,
    batch: Batch,
    *,
    label_smoothing: float = 0.0,
    teacher_forcing_ratio: float = 1.0,
    objectives: Sequence[Objective] = (),
    reverse: Seq2Seq | None = None,
) -> BatchLoss:
    """Run the model on a batch and return its loss sums.

    Dropout and sampled tokens draw from the global random number generator. `reverse` is the
    reverse model, if an objective needs it.
    """
    outputs = model(batch, teacher_forcing_ratio)
    loss = model.output.loss(outputs, label_smoothing=label_smoothing)
    reverse_sums = []
    if reverse is not None:
        outputs, reverse_sum = run_swapped(reverse, outputs, batch, label_smoothing=label_smoothing)
        reverse_sums.append(reverse_sum)
    terms = []
    for objective in objectives:
        term = objective.term(outputs)
        if term.dim() != 0:
            raise UserError(
                f"objective {type(objective).__name__}: its term has the shape "
                f"{list(term.shape)}; expected the sum over the batch, a 0-d tensor"
            )
        terms.append(term)
    return BatchLoss(loss.loss_sum, loss.nll_sum, terms + reverse_sums)
