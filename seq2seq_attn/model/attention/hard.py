"""Hard attention: the context is one source state, chosen by a sample in training and by the best score in search (Xu
et al. 2015, section 4.1; trained here by the straight-through Gumbel-softmax of Jang, Gu, Poole 2017, section 2.2).

    e_ij = v_a . tanh(W_a s_{i-1} + U_a h_j + b)
    y_i = softmax((e_i + g_i) / tau)      g_ij = -log(-log u_ij)      u_ij ~ U(0, 1)
    alpha_i = one_hot(argmax_j y_ij)      d alpha_i = d y_i

argmax_j (e_ij + g_ij) is a sample from softmax(e_i) (the Gumbel-max trick). The gradient is that of y, which is biased;
a high tau makes it more biased and less noisy. In search there is no noise. W_a is `query_projection`, U_a h_j + b is
`keys`, v_a is `score_weight_A`, tau is `temperature`.
"""

from __future__ import annotations

from typing import Annotated

import torch
from pydantic import Field
from torch import Tensor, nn

from seq2seq_attn.config import Size
from seq2seq_attn.config.types import Real
from seq2seq_attn.data.batch import SourceBatch
from seq2seq_attn.model.attention.base import Attended, Attention, Keys, Normalizer, Stateless, attend, zero_padding
from seq2seq_attn.model.encoder.base import Encoded

Temperature = Annotated[Real, Field(ge=0.01, le=100.0)]


class Hard(Attention):
    """Additive scores, a single position.

    Args:
        attention_size: A, the size of the hidden layer.
        temperature: tau, of the softmax whose gradient training follows.
    """

    def __init__(
        self, query_size: int, memory_size: int, attention_size: int, temperature: float, normalizer: Normalizer
    ) -> None:
        super().__init__(memory_size)
        self.query_projection = nn.Linear(query_size, attention_size, bias=False)
        self.key_projection = nn.Linear(memory_size, attention_size)
        self.score_weight_A = nn.Parameter(torch.empty(attention_size))
        self.temperature = temperature
        self.normalizer = normalizer

    def prepare(self, encoded: Encoded, source: SourceBatch) -> tuple[Keys, Stateless]:
        """Project the values to keys, once."""
        values_BSM = zero_padding(encoded.values_BSM, encoded.mask_BS)
        return Keys(values_BSM, encoded.mask_BS, self.key_projection(values_BSM)), Stateless()

    def step(self, query_BH: Tensor, memory: Keys, state: Stateless) -> Attended:
        """v . tanh(keys + W q), and one position of the largest score, with noise in training."""
        hidden_BSA = torch.tanh(memory.keys_BSA + self.query_projection(query_BH).unsqueeze(1))
        scores_BS = hidden_BSA @ self.score_weight_A.to(hidden_BSA.dtype)
        choose = self._sample if self.training else _best
        return Attended(*attend(scores_BS, memory.values_BSM, memory.mask_BS, choose), state)

    def _sample(self, scores_BS: Tensor, mask_BS: Tensor) -> Tensor:
        """A draw from the softmax of the scores, as a one-hot row with the gradient of the relaxed draw."""
        wide_BS = scores_BS.to(torch.promote_types(scores_BS.dtype, torch.float32))
        uniform_BS = torch.rand_like(wide_BS).clamp(min=torch.finfo(wide_BS.dtype).tiny)
        noisy_BS = wide_BS - torch.log(-torch.log(uniform_BS))
        relaxed_BS = self.normalizer(noisy_BS / self.temperature, mask_BS)
        return _best(noisy_BS, mask_BS) + (relaxed_BS - relaxed_BS.detach())


def _best(scores_BS: Tensor, mask_BS: Tensor) -> Tensor:
    """1 at the position of the largest score, 0 elsewhere."""
    best_B1 = scores_BS.masked_fill(~mask_BS, -torch.inf).argmax(dim=1, keepdim=True)
    zeros_BS = torch.zeros_like(scores_BS, dtype=torch.promote_types(scores_BS.dtype, torch.float32))
    return zeros_BS.scatter(1, best_B1, 1.0)


def build(
    *,
    query_size: int,
    memory_size: int,
    normalizer: Normalizer,
    attention_size: Size | None = None,
    temperature: Temperature = 1.0,
) -> Hard:
    """`attention_size` defaults to the query size."""
    return Hard(query_size, memory_size, attention_size or query_size, temperature, normalizer)
