"""A softmax over the target vocabulary (Bahdanau, Cho, Bengio 2015, appendix A.2.2).

    p(y_i) = softmax(W_o features_i + b_o)      L = sum_i [ -(1 - eps) log p(y_i) - eps / V sum_v log p(v) ]

(Szegedy et al. 2016, section 7, for the label smoothing eps.)
"""

from __future__ import annotations

from functools import partial

import torch
from torch import Tensor, nn
from torch.nn import functional

from seq2seq_attn.data.batch import Batch
from seq2seq_attn.model import speed
from seq2seq_attn.model.decoder.base import Memory, StepOutput
from seq2seq_attn.model.output.base import BatchLoss, Output, Outputs, wide
from seq2seq_attn.text.vocab import PAD

CHUNK_CELLS = 8 * 1024 * 1024
"""logits in memory at once: 32 MB in float32"""


class Softmax(Output):
    """One linear layer, whose weight may be tied to the target embedding."""

    def __init__(self, feature_size: int, num_ids: int) -> None:
        super().__init__()
        self.projection = nn.Linear(feature_size, num_ids)

    def log_probs(self, step: StepOutput, memory: Memory) -> Tensor:
        """See `Output.log_probs`."""
        return torch.log_softmax(wide(self.projection(step.features_BF)), dim=-1)

    def loss(self, outputs: Outputs, batch: Batch, *, label_smoothing: float) -> BatchLoss:
        """The cross-entropy, in chunks of rows."""
        fast = speed.find("cross_entropy", self)
        loss_sum, nll_sum = (fast or self._cross_entropy)(outputs, label_smoothing)
        return BatchLoss(loss_sum, nll_sum, batch.num_tokens)

    def _cross_entropy(self, outputs: Outputs, label_smoothing: float) -> tuple[Tensor, Tensor]:
        loss_sum = nll_sum = outputs.features_NF.new_zeros((), dtype=torch.float32)
        num_rows = max(1, CHUNK_CELLS // self.projection.out_features)
        cross_entropy = partial(functional.cross_entropy, ignore_index=PAD, reduction="sum")
        for first in range(0, len(outputs.targets_N), num_rows):
            chosen = slice(first, first + num_rows)
            logits_NV, targets_N = wide(self.projection(outputs.features_NF[chosen])), outputs.targets_N[chosen]
            loss_sum = loss_sum + cross_entropy(logits_NV, targets_N, label_smoothing=label_smoothing)
            nll_sum = nll_sum + cross_entropy(logits_NV.detach(), targets_N)
        return loss_sum, nll_sum


def build(*, feature_size: int, hidden_size: int, context_size: int, embedding_size: int, num_ids: int) -> Softmax:
    """No options."""
    return Softmax(feature_size, num_ids)
