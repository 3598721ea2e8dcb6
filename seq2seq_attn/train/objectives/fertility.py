"""Fertility: every source position should be attended to about once over the whole sentence (Xu et
al. 2015, section 4.2.1, "doubly stochastic attention"; Cohn et al. 2016, section 3.3, learn a
fertility per word instead).

    L = sum_s (phi - sum_t a_ts)^2

a_ts is the attention weight of source position s at target position t (alpha in the papers). phi is
the desired number of target tokens per source token (tau = 1 in Xu et al.). An update
minimizes the mean of L over source positions, EOS included.

In our measurements (docs/mechanisms.md) almost no source word is dropped or repeated, and attention
weights are flatter.
"""

from torch import Tensor

from seq2seq_attn.config.types import NonNegativeFloat
from seq2seq_attn.data.batch import Batch
from seq2seq_attn.model.output.base import DecoderOutputs
from seq2seq_attn.train.objectives.base import Objective, is_target_BT, target_weights


class Fertility(Objective):
    """The squared difference between the total attention weight of a source position and its
    fertility.

    Args:
        fertility: phi, target tokens per source token.
    """

    requires = ("source_attention",)

    def __init__(self, *, fertility: NonNegativeFloat = 1.0) -> None:
        self._fertility = fertility

    def count(self, batch: Batch) -> int:
        """Return the number of source positions, EOS included."""
        return int(_is_source_BS(batch).sum())

    def term(self, outputs: DecoderOutputs) -> Tensor:
        batch = outputs.batch
        missing_BS = self._fertility - target_weights(outputs).sum(dim=1)
        return missing_BS.square().masked_fill(~_is_source_BS(batch), 0.0).sum()


def _is_source_BS(batch: Batch) -> Tensor:
    """Return a bool mask that is True for source tokens and EOS. Rows without a target are False:
    such rows only pad the batch."""
    return batch.source.mask_BS & is_target_BT(batch).any(dim=1, keepdim=True)
