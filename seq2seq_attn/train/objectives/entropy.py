"""Entropy penalty: penalize attention that is spread over many source positions (entropy
minimization, Grandvalet and Bengio 2005, applied to attention weights instead of predictions).

    L = - sum_t sum_s a_ts log a_ts

a_ts is the attention weight of source position s at target position t. L is in nats. An update
minimizes the mean of L over target tokens.

In our measurements (docs/mechanisms.md) the attention weights become sharper, but point to wrong
words more often.
"""

from torch import Tensor

from seq2seq_attn.model.output.base import DecoderOutputs
from seq2seq_attn.train.objectives.base import Objective, target_weights


class Entropy(Objective):
    """The entropy of the attention weights of each target token."""

    requires = ("source_attention", "distribution")

    def term(self, outputs: DecoderOutputs) -> Tensor:
        weights_BTS = target_weights(outputs)
        positive_BTS = weights_BTS.where(weights_BTS > 0.0, 1.0)
        return -(positive_BTS * positive_BTS.log()).sum()
