"""R-Drop: two passes with different dropout should predict the same (Liang et al. 2021, "R-Drop: Regularized Dropout
for Neural Networks", section 2.1).

    L = sum_t 1/2 [ KL(p1_t || p2_t) + KL(p2_t || p1_t) ]

p1_t and p2_t are the distributions of target token t in the two passes. The cross-entropy and this term are divided by
the target tokens of both passes; the paper sums over both, so its total is twice ours, and the weight equals its alpha.

An update takes more than twice the time (docs/attention.md).
"""

from __future__ import annotations

import torch
from torch import Tensor

from seq2seq_attn.data.batch import Batch
from seq2seq_attn.model.output.base import ROWS_AT_ONCE, Outputs
from seq2seq_attn.text.vocab import PAD
from seq2seq_attn.train.objectives.base import Objective


class RDrop(Objective):
    """The symmetric Kullback-Leibler divergence of two passes."""

    needs_weights = False
    num_passes = 2

    def term(self, outputs: Outputs, batch: Batch) -> Tensor:
        """See `Objective.term`."""
        if outputs.log_probs_of is None:
            raise ValueError("r_drop: outputs without log_probs_of")
        is_real_N = outputs.targets_N != PAD
        is_first_N = outputs.positions_N % len(batch.tgt_out_BT) % 2 == 0
        # the same tokens in the same order, as nothing is fed back (`train/check.py`)
        first_I, second_I = ((is_real_N & is_pass_N).nonzero().squeeze(1) for is_pass_N in (is_first_N, ~is_first_N))
        total = outputs.features_NF.new_zeros((), dtype=torch.float32)
        for first, second in zip(torch.split(first_I, ROWS_AT_ONCE), torch.split(second_I, ROWS_AT_ONCE), strict=True):
            total = total + _divergence(outputs.log_probs_of(first), outputs.log_probs_of(second))
        return total


def _divergence(first_IV: Tensor, second_IV: Tensor) -> Tensor:
    """The sum over tokens of 1/2 [KL + KL] = 1/2 sum_v (p - q) (log p - log q); 0 where both are 0."""
    is_possible_IV = (first_IV > -torch.inf) & (second_IV > -torch.inf)
    difference_IV = torch.where(is_possible_IV, first_IV, 0.0) - torch.where(is_possible_IV, second_IV, 0.0)
    return 0.5 * ((first_IV.exp() - second_IV.exp()) * difference_IV).sum()


def build() -> RDrop:
    """No options."""
    return RDrop()
