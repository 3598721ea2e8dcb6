"""Hard attention: the context is one source state, which is sampled in training, and has the
highest score in search (Xu et al. 2015, section 4.1).

    e_ij = v_a . tanh(W_a s_{i-1} + U_a h_j + b)

    in training    c_i = h_j,  j ~ softmax(e_i)
    in search      c_i = h_j,  j = argmax_k e_ik

W_a is `query_projection`, U_a h_j + b is `keys`, v_a is `score_weight_A`. The gradient's estimator
is `straight_through`, the default, or `reinforce`.

`straight_through`: the Gumbel-softmax (Jang, Gu, Poole 2017, section 2.2).

    y_i = softmax((e_i + g_i) / tau)      g_ij = -log(-log u_ij)      u_ij ~ U(0, 1)
    alpha_i = one_hot(argmax_j y_ij)      d alpha_i = d y_i

argmax_j (e_ij + g_ij) is a sample from softmax(e_i) (the Gumbel-max trick). The gradient is that of
y, which is biased; a high tau makes it more biased and less noisy. tau is `temperature`.

`reinforce`: the score-function estimator of the paper. The objective `reinforce` computes it, so
the configuration must name this objective.

    alpha_i = softmax(e_i)      b_i = w . s_{i-1} + w_0

The weights are alpha_i, in search too; no gradient of the context reaches them. b_i is `baseline`,
a learned baseline in place of the paper's moving average (the "input-dependent baseline" of Mnih
and Gregor 2014). To lower the variance, the paper replaces the drawn value by the expected value
with probability 1/2, which is left out here.

Another normalizer replaces the softmax in y (`straight_through`) and in alpha (`reinforce`).
`straight_through` still draws from the softmax.
"""

from typing import Literal

import torch
from torch import Tensor, nn

from seq2seq_attn.config import Size
from seq2seq_attn.config.types import Temperature
from seq2seq_attn.model.attention.base import (
    AdditiveAttention,
    Attended,
    Draw,
    Keys,
    Normalizer,
    average,
)
from seq2seq_attn.model.layers import wide, wide_dtype


class Hard(AdditiveAttention):
    """Hard attention with additive scores: the context is the value of a single position.

    Args:
        attention_size: A, the size of the hidden layer; None stands for the query size.
        temperature: tau, the temperature of the softmax whose gradient `straight_through` uses.
    """

    def __init__(
        self,
        *,
        query_size: int,
        memory_size: int,
        normalizer: Normalizer,
        attention_size: Size | None = None,
        estimator: Literal["straight_through", "reinforce"] = "straight_through",
        temperature: Temperature = 1.0,
    ) -> None:
        super().__init__(query_size, memory_size, attention_size, normalizer)
        self.temperature = temperature
        self.draws_positions = estimator == "reinforce"
        self.is_one_hot = not self.draws_positions
        self.baseline = nn.Linear(query_size, 1) if self.draws_positions else None

    def step(self, query_BH: Tensor, memory: Keys, state: None) -> Attended:
        """Score the positions by v . tanh(keys + W q) and choose one of them, by noisy scores in
        training and by the largest score in search."""
        scores_BS = self.scores(query_BH, memory.keys_BSA)
        if self.baseline is not None:
            return self._draw(scores_BS, self.baseline(query_BH.detach()), memory)
        choose = self._sample if self.training else _best
        return average(choose(scores_BS, memory.mask_BS), memory.values_BSM)

    def _draw(self, scores_BS: Tensor, baseline_B1: Tensor, memory: Keys) -> Attended:
        """Return the value of one position, and a `Draw` with the log-probability of this position.
        Training draws the position by the weights; search takes the position with the largest
        weight."""
        weights_BS = self.normalizer(scores_BS, memory.mask_BS)
        drawn_B1 = weights_BS.argmax(1, keepdim=True)
        if self.training:
            # `multinomial` raises an error for NaN, so NaN is replaced here; log_prob_B keeps it
            drawn_B1 = torch.multinomial(weights_BS.detach().nan_to_num(1.0), 1)
        context_B1M = memory.values_BSM.take_along_dim(drawn_B1.unsqueeze(2), dim=1)
        log_prob_B = weights_BS.gather(1, drawn_B1).squeeze(1).log()
        draw = Draw(log_prob_B, baseline_B1.squeeze(1).to(weights_BS.dtype))
        return Attended(context_B1M.squeeze(1), weights_BS, extra=draw)

    def _sample(self, scores_BS: Tensor, mask_BS: Tensor) -> Tensor:
        """Draw a position from the softmax of the scores. The result is a one-hot row whose
        gradient is that of the relaxed draw y."""
        wide_BS = wide(scores_BS)
        uniform_BS = torch.rand_like(wide_BS).clamp(min=torch.finfo(wide_BS.dtype).tiny)
        noisy_BS = wide_BS - torch.log(-torch.log(uniform_BS))
        relaxed_BS = self.normalizer(noisy_BS / self.temperature, mask_BS)
        return _best(noisy_BS, mask_BS) + (relaxed_BS - relaxed_BS.detach())


def _best(scores_BS: Tensor, mask_BS: Tensor) -> Tensor:
    """Return one-hot rows with 1 at the position of the largest score."""
    best_B1 = scores_BS.masked_fill(~mask_BS, -torch.inf).argmax(dim=1, keepdim=True)
    zeros_BS = torch.zeros_like(scores_BS, dtype=wide_dtype(scores_BS.dtype))
    return zeros_BS.scatter(1, best_B1, 1.0)
