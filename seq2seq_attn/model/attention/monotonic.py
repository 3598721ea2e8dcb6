"""Monotonic attention: each step goes on reading the source from the position where the previous
step stopped, and never goes back (Raffel et al. 2017, sections 2.2 to 2.5; related to Yu, Buys,
Blunsom 2016, who sum over monotonic alignments).

    e_ij = g (v / |v|) . tanh(W s_{i-1} + V h_j + b) + r      p_ij = sigmoid(e_ij + noise)

    in training    alpha_ij = p_ij sum_{k <= j} alpha_{i-1,k} prod_{k <= l < j} (1 - p_il)
    in search      alpha_ij = 1 at the first j >= t_{i-1} with e_ij > 0, which is t_i

alpha_0 is 1 on the first position. Gaussian noise, with the standard deviation `noise`, makes the
model learn scores for which p is near 0 or 1. W is `query_projection`, V h_j + b is `keys`, v is
`score_weight_A`. g is `weight_norm_gain_1` and begins at 1 / sqrt(A); r is `offset_bias_1` and
begins at 0, where p = 1/2 moves the expected position by one per step.

In the paper a decoder that reads past the end gets a context of 0, so the weights may sum to less
than 1. Here p = 1 at the last position, EOS: reading stops there at the latest, and the weights sum
to 1. The paper computes the sum over k by a recurrence, or by a quotient of cumulative products;
here the product is the exponential of a sum of logarithms, which divides by nothing.

An output that reads the weights, such as `copy`, sees the expected weights in training, and a
single position in search.

German verbs at the end of a clause require moving backwards in the source, which this attention
cannot do. So German to English is a negative control (docs/mechanisms.md).
"""

import torch
from torch import Tensor, nn
from torch.nn import functional

from seq2seq_attn.config import Size
from seq2seq_attn.config.types import NonNegativeFloat
from seq2seq_attn.data.batch import SourceBatch
from seq2seq_attn.model.attention.base import (
    AdditiveAttention,
    Attended,
    Keys,
    additive_scores,
    average,
)
from seq2seq_attn.model.encoder.base import Encoded
from seq2seq_attn.model.layers import wide_dtype


class Monotonic(AdditiveAttention):
    """Monotonic attention, left to right: expected weights in training, one chosen position
    otherwise.

    Args:
        attention_size: A, the size of the hidden layer; None stands for the query size.
        noise: standard deviation of the noise on the scores in training.
    """

    def __init__(
        self,
        *,
        query_size: int,
        memory_size: int,
        attention_size: Size | None = None,
        noise: NonNegativeFloat = 1.0,
    ) -> None:
        super().__init__(query_size, memory_size, attention_size)
        self.weight_norm_gain_1 = nn.Parameter(torch.full((1,), len(self.score_weight_A) ** -0.5))
        self.offset_bias_1 = nn.Parameter(torch.zeros(1))
        self.noise = noise

    def prepare(self, encoded: Encoded, source: SourceBatch) -> tuple[Keys, Tensor]:
        """Return the keys, and the weights `weights_BS` of the previous step. Before the first
        step, the first position has weight 1, where reading begins."""
        weights_BS = torch.zeros_like(encoded.mask_BS, dtype=wide_dtype(encoded.values_BSM.dtype))
        weights_BS[:, 0] = 1.0
        return self.keys(encoded), weights_BS

    def step(self, query_BH: Tensor, memory: Keys, state: Tensor) -> Attended:
        """Read on from the position where the previous step stopped."""
        query_BA = self.query_projection(query_BH)
        weight_A = self.weight_norm_gain_1 * functional.normalize(self.score_weight_A, dim=0)
        scores_BS = additive_scores(query_BA, memory.keys_BSA, weight_A)
        scores_BS = scores_BS.to(state.dtype) + self.offset_bias_1
        is_last_BS = memory.mask_BS & ~functional.pad(memory.mask_BS[:, 1:], (0, 1))
        if self.training:
            scores_BS = scores_BS + self.noise * torch.randn_like(scores_BS)
            weights_BS = _expected(scores_BS, memory.mask_BS, is_last_BS, state)
        else:
            weights_BS = _first_stop(scores_BS, is_last_BS, state)
        return average(weights_BS, memory.values_BSM, weights_BS)


def _expected(scores_BS: Tensor, mask_BS: Tensor, is_last_BS: Tensor, before_BS: Tensor) -> Tensor:
    """Return the probability of stopping at each position, from the probabilities `before_BS` that
    the previous step stopped at each position."""
    stop_BS = torch.sigmoid(scores_BS).masked_fill(is_last_BS, 1.0).masked_fill(~mask_BS, 0.0)
    log_go_on_BS = functional.logsigmoid(-scores_BS).masked_fill(~mask_BS, 0.0)
    passed_BS = functional.pad(log_go_on_BS[:, :-1], (1, 0))  # log(1 - p) of the position before
    between_BSS = (
        passed_BS.unsqueeze(1).expand(-1, mask_BS.shape[1], -1).triu(1).cumsum(dim=2).exp().triu()
    )
    return stop_BS * (before_BS.unsqueeze(2) * between_BSS).sum(dim=1)


def _first_stop(scores_BS: Tensor, is_last_BS: Tensor, before_BS: Tensor) -> Tensor:
    """Return one-hot rows with 1 at the position where this step stops. This is the first position
    with a positive score that is not before the previous step's position, or the last real
    position."""
    positions_S = torch.arange(scores_BS.shape[1], device=scores_BS.device)
    is_ahead_BS = positions_S >= before_BS.argmax(dim=1, keepdim=True)
    stops_BS = is_ahead_BS & ((scores_BS > 0.0) | is_last_BS)
    stop_B1 = positions_S.where(stops_BS, positions_S.shape[0]).amin(dim=1, keepdim=True)
    return (positions_S == stop_B1).to(before_BS.dtype)
