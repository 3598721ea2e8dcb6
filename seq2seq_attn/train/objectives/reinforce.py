"""REINFORCE: train hard attention by rewarding the source positions that made the target probable
(Xu et al. 2015, section 4.1; Williams 1992).

    L = sum_t [ - A_t log alpha_t(j_t) - lambda_e H(alpha_t) + (R_t / n_t - b_t)^2 ]
    R_t = sum_{t' >= t} log p(y_t')      A_t = R_t - n_t b_t, constant

n_t is the number of target tokens from t on, EOS included.

j_t is the position drawn at step t (s~ in the paper), alpha_t the weights that it was drawn from,
b_t the attention's baseline. A_t is the advantage. The paper's reward is that of the whole
sentence; tokens before t do not depend on j_t, so they add nothing but noise. Its lambda_r is the
weight of the objective, which also weighs the two other terms. The last term teaches the baseline.
lambda_e is `entropy`. The mean is over target tokens.

In our measurements (docs/mechanisms.md) sampled positions learn slowly: after ten epochs nearly all
still point to wrong words.
"""

from torch import Tensor

from seq2seq_attn.config.types import NonNegativeFloat
from seq2seq_attn.model.attention.base import Draw
from seq2seq_attn.model.output.base import DecoderOutputs
from seq2seq_attn.train.objectives.base import Objective, is_target_BT
from seq2seq_attn.train.objectives.entropy import Entropy


class Reinforce(Objective):
    """The policy gradient of the drawn positions, their entropy, and the error of the baseline.

    Args:
        entropy: lambda_e, which keeps the weights from settling too early.
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
    """The sum over this and all later steps."""
    return values_TB.flip(0).cumsum(dim=0).flip(0)
