"""Coverage loss: penalize attention to source positions that earlier steps attended to (See, Liu,
Manning 2017, section 2.3, equation 12).

    L = sum_t sum_s min(a_ts, c_ts)        c_ts = sum_{t' < t} a_{t's}

a_ts is the attention weight of source position s at target position t (a_i^t in the paper). c_ts is
the coverage of source position s before target position t. An update minimizes the mean of L over
target tokens.

The paper adds this loss only to a trained model. From the first update on, the loss is harmful,
because attention to a new position costs nothing, whether the position is right or wrong. So the
overlay starts the loss halfway through training.
"""

import torch
from torch import Tensor

from seq2seq_attn.model.output.base import DecoderOutputs
from seq2seq_attn.train.objectives.base import Objective, target_weights


class Coverage(Objective):
    """The overlap of the attention weights of each step with the sum of the weights of earlier
    steps."""

    requires = ("source_attention",)

    def term(self, outputs: DecoderOutputs) -> Tensor:
        weights_BTS = target_weights(outputs)
        coverage_BTS = weights_BTS.cumsum(dim=1)[:, :-1]
        return torch.minimum(weights_BTS[:, 1:], coverage_BTS).sum()
