"""Confidence penalty, a training objective from outside the package: reward predictions of high
entropy (Pereyra, Tucker, Chorowski, Kaiser, Hinton 2017, "Regularizing neural networks by
penalizing confident output distributions", section 3.1).

    L = - sum_t H(p_t)      H(p) = - sum_v p(v) log p(v)

p_t is the distribution of the target token at position t. The mean is over target tokens; beta in
the paper is the objective's weight.

    seq2seq train -c quickstart --import confidence_penalty \\
        --set train.objectives.confidence_penalty.weight=0.1
"""

from torch import Tensor

from seq2seq_attn.model.output.base import DecoderOutputs
from seq2seq_attn.text.vocab import PAD
from seq2seq_attn.train.objectives.base import Objective

LEAST_LOG_PROB = -100.0
"""of a token that cannot follow, whose log-probability is -inf"""


class ConfidencePenalty(Objective):
    """Minus the entropy of each target token's distribution. It reads no attention weights."""

    def term(self, outputs: DecoderOutputs) -> Tensor:
        """See `Objective.term`."""
        real_I = (outputs.targets_N != PAD).nonzero().squeeze(1)
        log_probs_IV = outputs.log_probs_of(real_I).clamp_min(LEAST_LOG_PROB)
        return (log_probs_IV.exp() * log_probs_IV).sum()
