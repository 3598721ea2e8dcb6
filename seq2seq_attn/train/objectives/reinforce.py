"""REINFORCE: train hard attention by rewarding the source positions that made the target probable
(Xu et al. 2015, section 4.1; Williams 1992).

    L = sum_t [ - A_t log alpha_t(j_t) - lambda_e H(alpha_t) + (R_t / n_t - b_t)^2 ]
    R_t = sum_{t' >= t} log p(y_t')      A_t = R_t - n_t b_t, constant

    n_t         number of target tokens from t on, EOS included
    j_t         source position drawn at step t (s~ in the paper)
    alpha_t     attention weights from which j_t was drawn
    H           entropy
    b_t         baseline of the attention; the last term of L trains the baseline
    R_t         reward
    A_t         advantage, which has no gradient
    lambda_e    option `entropy`

The paper rewards a position with the log-probability of the whole sentence. Tokens before t do not
depend on j_t and would only add noise, so R_t leaves them out. The weight of the objective is the
paper's lambda_r; it also applies to the two other terms. An update minimizes the mean of L over
target tokens.

In our measurements (docs/mechanisms.md) training with sampled positions is slow: after ten epochs
nearly all positions still point to wrong words.
"""

from torch import Tensor

from seq2seq_attn.config.types import NonNegativeFloat
from seq2seq_attn.model.attention.base import Draw
from seq2seq_attn.model.output.base import DecoderOutputs
from seq2seq_attn.train.objectives.base import Objective, is_target_BT
from seq2seq_attn.train.objectives.entropy import Entropy


class Reinforce(Objective):
    """The loss of REINFORCE: the loss whose gradient is the policy gradient of the drawn positions,
    minus the weighted entropy of the attention weights, plus the squared error of the baseline.

    Args:
        entropy: lambda_e, the weight of the entropy; it keeps the attention weights from becoming
            sharp too early.
    """

    requires = ("drawn_positions",)

    def __init__(self, *, entropy: NonNegativeFloat = 0.01) -> None:
        self._entropy_weight = entropy
        self._entropy = Entropy()

    def term(self, outputs: DecoderOutputs) -> Tensor:
        assert isinstance(outputs.extra, Draw)
        draw_log_probs_TB, baselines_TB = outputs.extra
        is_target_TB = is_target_BT(outputs.batch).t()
        log_probs_TB = outputs.target_log_probs().view(is_target_TB.shape)
        rewards_TB = _from_here_on(log_probs_TB.masked_fill(~is_target_TB, 0.0))
        num_left_TB = _from_here_on(is_target_TB.to(log_probs_TB.dtype))
        errors_TB = rewards_TB / num_left_TB.clamp_min(1.0) - baselines_TB
        advantages_TB = (errors_TB * num_left_TB).detach()
        terms_TB = errors_TB.square() - advantages_TB * draw_log_probs_TB
        total = terms_TB.masked_fill(~is_target_TB, 0.0).sum()
        return total - self._entropy_weight * self._entropy.term(outputs)


def _from_here_on(values_TB: Tensor) -> Tensor:
    """Return, for each step, the sum over this step and all later steps."""
    return values_TB.flip(0).cumsum(dim=0).flip(0)
