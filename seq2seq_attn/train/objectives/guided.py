"""Guided attention: train the attention weights on word alignments ("guided alignment training" in
Chen et al. 2016, whose cross-entropy is used here; "supervised attention" in Mi, Wang, Ittycheriah
2016, and in Liu et al. 2016).

    L = - sum_t sum_s a*_ts log a_ts        a*_ts = 1 / |links of t| for each link (s, t)

a_ts is the attention weight of source position s at target position t (alpha in the papers). a* is
the alignment, normalized for each target position. Target positions without a link, such as EOS,
have no loss. An update minimizes the mean of L over target positions with a link.

An attention weight below 1e-30 has no gradient, so a link to such a position adds a constant to the
loss and trains nothing. Weights are exactly 0 at many positions with `sparsemax` and `entmax15`,
outside the window of `local`, and with `hard` (`straight_through`) at all positions except the
drawn position.

In our measurements (docs/mechanisms.md) the attention weights align better, and BLEU is lower.
"""

import torch
from torch import Tensor

from seq2seq_attn.data.batch import Batch
from seq2seq_attn.model.output.base import DecoderOutputs
from seq2seq_attn.train.objectives.base import Objective

SMALLEST = 1e-30
"""lower bound on an attention weight in the logarithm, so that loss and gradient stay finite in
float32"""


class Guided(Objective):
    """The cross-entropy between links and attention weights."""

    requires = ("source_attention", "links")

    def count(self, batch: Batch) -> int:
        """Return the number of target positions with a link."""
        return len(torch.unique(_target_positions(batch)))

    def term(self, outputs: DecoderOutputs) -> Tensor:
        batch = outputs.batch
        assert batch.links_L3 is not None  # a configuration without links is rejected
        row_L, source_L, target_L = batch.links_L3.unbind(1)
        positions_L = _target_positions(batch)
        num_links_L = torch.bincount(positions_L)[positions_L]
        weights_L = outputs.weights_TBS[target_L, row_L, source_L]
        return -(weights_L.clamp_min(SMALLEST).log() / num_links_L).sum()


def _target_positions(batch: Batch) -> Tensor:
    """Return the target position of each link, as an index into a flattened [B, T]."""
    assert batch.links_L3 is not None  # a configuration without links is rejected
    row_L, _, target_L = batch.links_L3.unbind(1)
    return row_L * batch.tgt_out_BT.shape[1] + target_L
