"""Attention with structural biases of alignment models (Cohn et al. 2016, sections 3.1 to 3.3).

    f_ji = v . tanh(W^ae e_i + W^ah g_{j-1} + W^ap psi(j, i, I) + W^am xi_1(i) + W^af xi_2(i) + b)

    position    psi  = [log(1 + j), log(1 + i), log(1 + I)]
    Markov      xi_1 = [alpha_{j-1,i-k}, ..., alpha_{j-1,i+k}]
    fertility   xi_2 = [sum_{j'<j} alpha_{j',i-k}, ..., sum_{j'<j} alpha_{j',i+k}]

j counts target positions, i source positions, both from 1; I is the source length; alpha_0 is 0
everywhere. k is `radius`, W^ae e_i + b is `keys`, W^ah is `query_projection`, W^ap, W^am and W^af
side by side are `bias_projection`, v is `score_weight_A`. The paper's global fertility (section
3.3) is a term of the loss, not of the score.

No gradient flows through the features into earlier steps (as in `location.py`).

Shapes, besides those of `base.py`: F structural features of a position.
"""

from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from seq2seq_attn.config import Size
from seq2seq_attn.data.batch import SourceBatch
from seq2seq_attn.errors import UsageError
from seq2seq_attn.model.attention.base import AdditiveAttention, Attended, Keys, Normalizer
from seq2seq_attn.model.encoder.base import Encoded
from seq2seq_attn.model.layers import wide_dtype


class State(NamedTuple):
    """The number of steps so far, the weights of the last step, and the sum of the weights of all
    steps. The weights are detached."""

    step_B: Tensor
    weights_BS: Tensor
    total_BS: Tensor


class Structural(AdditiveAttention):
    """Additive attention whose score also reads structural features.

    Args:
        attention_size: A, the size of the hidden layer; None stands for the query size.
        position, markov, fertility: whether the score reads the features of this kind. At least one
            of the three must be true.
        radius: k, neighbors on either side whose weights are in the Markov and fertility features.

    Raises:
        UsageError: `position`, `markov` and `fertility` are all false.
    """

    def __init__(
        self,
        *,
        query_size: int,
        memory_size: int,
        normalizer: Normalizer,
        attention_size: Size | None = None,
        position: bool = True,
        markov: bool = True,
        fertility: bool = True,
        radius: Size = 1,
    ) -> None:
        super().__init__(query_size, memory_size, attention_size, normalizer)
        if not (position or markov or fertility):
            raise UsageError(
                "model.attention.options: position, markov and fertility are all false; set one of "
                "them to true, or take model.attention.name=additive, which has none"
            )
        self.radius = radius
        self.has_position = position
        self.has_markov = markov
        self.has_fertility = fertility
        num_features = 3 * position + (2 * radius + 1) * (markov + fertility)
        self.bias_projection = nn.Linear(num_features, attention_size or query_size, bias=False)

    def prepare(self, encoded: Encoded, source: SourceBatch) -> tuple[Keys, State]:
        none_BS = torch.zeros_like(encoded.mask_BS, dtype=wide_dtype(encoded.values_BSM.dtype))
        step_B = torch.zeros_like(source.ids_BS[:, 0])
        return self.keys(encoded), State(step_B, none_BS, none_BS)

    def step(self, query_BH: Tensor, memory: Keys, state: State) -> Attended:
        """Normalize the scores v . tanh(keys + W q + W features)."""
        bias_BSA = self.bias_projection(self._features(memory.mask_BS, state))
        scores_BS = self.scores(query_BH, memory.keys_BSA, bias_BSA)
        attended = self.attend(scores_BS, memory)
        last_BS = attended.weights_BS.detach()
        next_state = State(state.step_B + 1, last_BS, state.total_BS + last_BS)
        return attended._replace(state=next_state)

    def _features(self, mask_BS: Tensor, state: State) -> Tensor:
        """Return the features psi, xi_1 and xi_2 side by side, [B, S, F]."""
        features = []
        if self.has_position:
            j_B1 = (state.step_B + 1).unsqueeze(1)
            i_BS = torch.ones_like(mask_BS, dtype=torch.int64).cumsum(dim=1)
            length_B1 = mask_BS.sum(dim=1, keepdim=True)
            numbers = [j_B1.expand_as(i_BS), i_BS, length_B1.expand_as(i_BS)]
            features.append(torch.stack(numbers, dim=2).to(state.total_BS.dtype).log1p())
        if self.has_markov:
            features.append(self._neighbors(state.weights_BS))
        if self.has_fertility:
            features.append(self._neighbors(state.total_BS))
        return torch.cat(features, dim=2)

    def _neighbors(self, numbers_BS: Tensor) -> Tensor:
        """Return for each position the numbers from k positions before it to k positions after it,
        [B, S, 2k + 1]. Beyond the edges the numbers are 0."""
        padded = functional.pad(numbers_BS, (self.radius, self.radius))
        return padded.unfold(1, 2 * self.radius + 1, 1)
