"""The contract of training objectives.

An objective is an extra loss term, computed from all decoder steps of a batch. It has no parameters
of its own.

A variant is a file of this folder with one final class, whose constructor takes the options of the
objective. The configuration names the objective in `train.objectives`, with its weight and its
options. An update minimizes

    loss / target tokens + sum over objectives of  weight * sum of terms / sum of counts

where the sums of terms and of counts run over all micro-batches and ranks. So the result does not
depend on the number of micro-batches or processes.

Shapes: B sentence pairs, T target positions, S source positions, L links.
"""

from abc import ABC, abstractmethod

from torch import Tensor

from seq2seq_attn.data.batch import Batch
from seq2seq_attn.model.output.base import DecoderOutputs
from seq2seq_attn.text.vocab import PAD


class Objective(ABC):
    """An extra loss, which ignores padding. The term of a batch is a sum over its rows.

    `requires` names properties of the model or the data that the objective needs. A configuration
    without these properties is rejected before data is prepared. The names are `source_attention`
    (attention weights over source positions), `distribution` (weights that sum to 1),
    `drawn_positions` (`DecoderOutputs.extra` is a `Draw`) and `links` (`Batch.links_L3` is not
    None).
    """

    requires: tuple[str, ...] = ()
    needs_reverse: bool = False
    """Whether the objective reads `DecoderOutputs.reverse_weights_SBT`. If so, a model of the other
    direction is trained beside the first model (`train/reverse.py`), and an update also minimizes
    the mean loss of that model per source token."""

    def count(self, batch: Batch) -> int:
        """Return the number of terms of a batch, by which the sum of terms is divided. By default,
        this is the number of target tokens. The method is called before the forward pass, with the
        batch on the CPU, because an update needs the counts of all its micro-batches before the
        first backward pass."""
        return batch.num_tokens

    @abstractmethod
    def term(self, outputs: DecoderOutputs) -> Tensor:
        """Return the sum of terms over the batch: a 0-d tensor with its graph, in float32 or
        wider."""


def is_target_BT(batch: Batch) -> Tensor:
    """Return a bool mask that is True for target tokens and EOS."""
    return batch.tgt_out_BT != PAD


def target_weights(outputs: DecoderOutputs) -> Tensor:
    """Return the attention weights of all steps as `weights_BTS`, with 0 at positions without a
    target token."""
    weights_BTS = outputs.weights_TBS.transpose(0, 1)
    return weights_BTS.masked_fill(~is_target_BT(outputs.batch).unsqueeze(2), 0.0)
