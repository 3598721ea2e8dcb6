"""Coverage loss: penalize attention to source positions that earlier steps attended to (See, Liu,
Manning 2017, section 2.3, equation 12).

    L = sum_t sum_s min(a_ts, c_ts)        c_ts = sum_{t' < t} a_{t's}

a_ts is the weight of source position s at target position t (a_i^t in the paper), c_ts its coverage
so far. The mean is over target tokens.

The paper adds this loss to a trained model only. Used from the first update on, it does harm:
attention to a new position costs nothing, right or wrong. So the overlay starts it halfway through
training.
"""

import torch
from torch import Tensor

from seq2seq_attn.model.output.base import DecoderOutputs
from seq2seq_attn.train.objectives.base import Objective, target_weights


class Coverage(Objective):
    """The overlap of each step's weights with all weights before it."""

    requires = ("source_attention",)

    def term(self, outputs: DecoderOutputs) -> Tensor:
        weights_BTS = target_weights(outputs)
        coverage_BTS = weights_BTS.cumsum(dim=1)[:, :-1]
        return torch.minimum(weights_BTS[:, 1:], coverage_BTS).sum()
