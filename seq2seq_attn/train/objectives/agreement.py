"""Agreement: train p(y | x) and p(x | y) together, with a bonus where their attention weights agree
(Cohn et al. 2016, section 3.4, "trace bonus").

    L = - tr(A_xy A_yx) = - sum_t sum_s a_ts a'_st

a_ts is the weight of source position s at target position t in the first model, a'_st that of
target position t at source position s in the second (alpha in the paper). Both have EOS as a
position. An update minimizes L_xy + w L + L_yx, where w is the weight (gamma in the paper). Unlike
the paper, each loss is a mean: L_xy and L over target tokens, L_yx over source tokens. L is between
-1 and 0.

The second model has the same settings and its own weights; `train/loss.py` says where it is saved.
It is always trained with the reference tokens. Its dropout does not disturb that of the first: with
a weight of 0 both are trained as they would be alone. An update takes twice the time.

From the first update on, the bonus makes the weights sharp before they align, and BLEU falls. So
the overlay starts it halfway through training; the authors' code can also start from two trained
models.
"""

from torch import Tensor

from seq2seq_attn.model.output.base import DecoderOutputs
from seq2seq_attn.train.objectives.base import Objective, target_weights


class Agreement(Objective):
    """Minus the trace of the product of both directions' weights."""

    requires = ("source_attention",)
    needs_reverse = True

    def term(self, outputs: DecoderOutputs) -> Tensor:
        assert outputs.reverse_weights_SBT is not None
        return -(target_weights(outputs) * outputs.reverse_weights_SBT.permute(1, 2, 0)).sum()
