"""Local attention: a window of the source around one position per step (Luong, Pham, Manning 2015,
section 3.2).

    local-m (`monotonic`):   p_t = t
                             a_t(s) = align(h_t, h_s)
    local-p (`predictive`):  p_t = S sigmoid(v_p . tanh(W_p h_t))
                             a_t(s) = align(h_t, h_s) exp(-(s - p_t)^2 / (2 sigma^2))

    for s in [p_t - D, p_t + D], and 0 elsewhere; sigma = D / 2

D is `radius`, W_p is `position_projection`, v_p is `position_weight_H`. align normalizes the score
"general", h_t . W_a h_s, by softmax; W_a h_s is `keys`. With `is_scaled` the scores are divided by
sqrt(H), as in `bilinear`.

Here the Gaussian's logarithm is added to the scores, so that the weights sum to 1: with softmax
they are the weights of the paper, divided by their sum. Positions count from 0, so S is the last
position; local-m stays at the last position once t is larger.

In our measurements (docs/mechanisms.md) local-p depends on the seed: one run of three, and two runs
of three with scaled scores, fail on long sentences, where the predicted center is wrong and the
window does not contain the right word.
"""

from typing import Literal

import torch
from torch import Tensor, nn

from seq2seq_attn.config import Size
from seq2seq_attn.data.batch import SourceBatch
from seq2seq_attn.model.attention.base import Attended, Keys, Normalizer, ScoredAttention
from seq2seq_attn.model.encoder.base import Encoded
from seq2seq_attn.model.layers import wide


class Local(ScoredAttention):
    """Bilinear attention within a window of source positions.

    Args:
        window: `predictive` for local-p, which predicts the center of the window; `monotonic` for
            local-m, whose center moves by one position per step.
        radius: D, positions of the window on either side of its center.
        is_scaled: whether the scores are divided by the square root of the query size.
    """

    def __init__(
        self,
        *,
        query_size: int,
        memory_size: int,
        normalizer: Normalizer,
        window: Literal["predictive", "monotonic"] = "predictive",
        radius: Size = 10,
        is_scaled: bool = False,
    ) -> None:
        super().__init__(memory_size)
        self.key_projection = nn.Linear(memory_size, query_size, bias=False)
        self.position_projection: nn.Linear | None = None
        if window == "predictive":
            self.position_projection = nn.Linear(query_size, query_size, bias=False)
            self.position_weight_H = nn.Parameter(torch.empty(query_size))
        self.radius = radius
        self.scale = query_size**-0.5 if is_scaled else 1.0
        self.normalizer = normalizer

    def prepare(self, encoded: Encoded, source: SourceBatch) -> tuple[Keys, Tensor]:
        """Return the keys, and `step_B`, the number of steps so far."""
        keys = self.keys(encoded)
        step_B = torch.zeros_like(source.ids_BS[:, 0])
        return keys._replace(keys_BSA=keys.keys_BSA * self.scale), step_B

    def step(self, query_BH: Tensor, memory: Keys, state: Tensor) -> Attended:
        """Normalize the scores q . key within the window. If the center is predicted, the logarithm
        of the Gaussian is added to the scores."""
        scores_BS = self.scores(query_BH, memory.keys_BSA)
        last_B = memory.mask_BS.sum(dim=1) - 1
        center_B = torch.minimum(state, last_B)
        if self.position_projection is not None:
            hidden_BH = torch.tanh(self.position_projection(query_BH))
            share_B = torch.sigmoid((hidden_BH * self.position_weight_H).sum(dim=1))
            center_B = last_B * wide(share_B)
        distance_BS = torch.arange(scores_BS.shape[1], device=last_B.device) - center_B.unsqueeze(1)
        if self.position_projection is not None:
            scores_BS = scores_BS - distance_BS.square() / (2.0 * (self.radius / 2.0) ** 2)
        window_BS = memory.mask_BS & (distance_BS.abs() <= self.radius)
        return self.attend(scores_BS, memory._replace(mask_BS=window_BS), state + 1)
