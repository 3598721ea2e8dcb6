"""The contract of training objectives: extra loss terms, computed from all decoder steps of a
batch. They have no parameters of their own.

A variant is a file of this folder with one final class, whose constructor takes its options. The
configuration names it in `train.objectives`, with its weight and its options. An update minimizes

    loss / target tokens + sum over objectives of  weight * sum of terms / sum of counts

where the sums run over all micro-batches and ranks, so that accumulation and several processes
change nothing.

Shapes: B sentence pairs, T target positions, S source positions, L links.
"""

from abc import ABC, abstractmethod

from torch import Tensor

from seq2seq_attn.data.batch import Batch
from seq2seq_attn.model.output.base import DecoderOutputs
from seq2seq_attn.text.vocab import PAD


class Objective(ABC):
    """An extra loss. It ignores padding, and the term of a batch is the sum over its rows.

    A model or data that lacks one of `requires` is refused before data is prepared:
    `source_attention` for weights over source positions, `drawn_positions` for a `Draw` as
    `DecoderOutputs.extra`, `links` for `Batch.links_L3`.
    """

    requires: tuple[str, ...] = ()
    needs_reverse: bool = False
    """whether it reads `DecoderOutputs.reverse_weights_SBT`. A model of the other direction is then
    trained beside the first (`train/loss.py`), and an update minimizes its loss too, as a mean over
    source tokens"""

    def count(self, batch: Batch) -> int:
        """The number of terms of a batch, by which the sum is divided: one per target token, unless
        a variant says otherwise. Called before the forward pass, with the batch on the CPU, as an
        update must know it for all its micro-batches before the first backward pass."""
        return batch.num_tokens

    @abstractmethod
    def term(self, outputs: DecoderOutputs) -> Tensor:
        """0-d, the sum over the batch, with its graph, in float32 or wider."""


def is_target_BT(batch: Batch) -> Tensor:
    """Bool, True = a target token or EOS."""
    return batch.tgt_out_BT != PAD


def target_weights(outputs: DecoderOutputs) -> Tensor:
    """`weights_BTS` of all steps, 0 where there is no target token."""
    weights_BTS = outputs.weights_TBS.transpose(0, 1)
    return weights_BTS.masked_fill(~is_target_BT(outputs.batch).unsqueeze(2), 0.0)
