"""Agreement: train p(y | x) and p(x | y) together, with a bonus where their attention weights agree
(Cohn et al. 2016, section 3.4, "trace bonus").

    L = - tr(A_xy A_yx) = - sum_t sum_s a_ts a'_st

In the first model, a_ts is the attention weight of source position s at target position t. In the
second model, a'_st is the attention weight of target position t at source position s. (The paper
writes alpha for both.) EOS is a position in both models. An update minimizes L_xy + w L + L_yx,
where w is the weight of the objective (gamma in the paper). Unlike in the paper, each loss is a
mean: L_xy and L are means over target tokens, L_yx is a mean over source tokens. L is between -1
and 0.

The second model has the settings of the first model and its own parameters. It is saved beside the
first model (`train/reverse.py`), and always trained with the reference tokens. Its dropout draws
from a separate copy of the random number generator. So with an objective weight of 0, both models
are trained as they would be alone. An update takes twice the time.

A bonus from the first update on makes the attention weights sharp before they align, and BLEU
falls. So the overlay starts the bonus halfway through training. The authors' code can also start
from two trained models.
"""

from torch import Tensor

from seq2seq_attn.model.output.base import DecoderOutputs
from seq2seq_attn.train.objectives.base import Objective, target_weights


class Agreement(Objective):
    """The negative trace of the product of the attention weights of both directions."""

    requires = ("source_attention",)
    needs_reverse = True

    def term(self, outputs: DecoderOutputs) -> Tensor:
        assert outputs.reverse_weights_SBT is not None
        return -(target_weights(outputs) * outputs.reverse_weights_SBT.permute(1, 2, 0)).sum()
