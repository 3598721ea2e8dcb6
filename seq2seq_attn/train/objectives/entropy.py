"""Entropy penalty: penalize attention that is spread over many source positions (entropy
minimization, Grandvalet and Bengio 2005, here of the weights instead of the predictions).

    L = - sum_t sum_s a_ts log a_ts

a_ts is the weight of source position s at target position t. In nats; the mean is over target
tokens.

In our measurements (docs/mechanisms.md) the weights become sharper, but point to wrong words more
often.
"""

from torch import Tensor

from seq2seq_attn.model.output.base import DecoderOutputs
from seq2seq_attn.train.objectives.base import Objective, target_weights


class Entropy(Objective):
    """The entropy of each target token's weights."""

    requires = ("source_attention",)

    def term(self, outputs: DecoderOutputs) -> Tensor:
        weights_BTS = target_weights(outputs)
        positive_BTS = weights_BTS.where(weights_BTS > 0.0, 1.0)
        return -(positive_BTS * positive_BTS.log()).sum()
