"""A softmax over the target vocabulary (Bahdanau, Cho, Bengio 2015, appendix A.2.2).

    p(y_i) = softmax(W_o features_i + b_o)      L = sum_i [ -(1 - eps) log p(y_i) - eps / V sum_v log p(v) ]

(Szegedy et al. 2016, section 7, for the label smoothing eps.)
"""

from __future__ import annotations

import torch
from torch import Tensor

from seq2seq_attn.model.decoder.base import Memory, StepOutput
from seq2seq_attn.model.output.base import ScoredOutput, score_logits
from seq2seq_attn.model.tensors import wide


class Softmax(ScoredOutput):
    """One linear layer, whose weight may be tied to the target embedding."""

    def log_probs(self, step: StepOutput, memory: Memory) -> Tensor:
        """See `Output.log_probs`."""
        return torch.log_softmax(wide(self.projection(step.features_BF)), dim=-1)

    def score(self, step: StepOutput, memory: Memory, targets_N: Tensor) -> tuple[Tensor, Tensor]:
        return score_logits(wide(self.projection(step.features_BF)), targets_N)


def build(*, feature_size: int, num_ids: int) -> Softmax:
    """No options."""
    return Softmax(feature_size, num_ids)
