"""Sparsemax: the distribution nearest to the scores, with exact zeros (Martins and Astudillo 2016,
section 2, algorithm 1).

    sparsemax(z) = argmin_p ||p - z||^2 = max(z - tau(z), 0)

The threshold tau makes the weights sum to 1.
"""

import torch
from torch import Tensor

from seq2seq_attn.model.layers import wide

OUTSIDE = -2.0
"""a value for padding: it is more than 1 below the largest score, which is 0, so the weight of
padding is 0"""


def weights(scores_BS: Tensor, mask_BS: Tensor) -> Tensor:
    """Return `weights_BS`, exactly 0 on padding, in float32 or wider."""
    masked_BS = wide(scores_BS).masked_fill(~mask_BS, -torch.inf)
    largest_B1 = masked_BS.detach().amax(dim=-1, keepdim=True)
    z_BS = (masked_BS - largest_B1).clamp(min=OUTSIDE)
    ordered_BS = z_BS.sort(dim=-1, descending=True).values
    ranks_S = torch.arange(1, z_BS.shape[-1] + 1, device=z_BS.device, dtype=z_BS.dtype)
    excess_BS = ordered_BS.cumsum(dim=-1) - 1.0
    # The size is at least 1, except for NaN scores, whose weights are then NaN.
    size_B1 = (ranks_S * ordered_BS > excess_BS).sum(dim=-1, keepdim=True).clamp(min=1)
    tau_B1 = excess_BS.gather(-1, size_B1 - 1) / size_B1
    return torch.where(z_BS <= tau_B1, 0.0, z_BS - tau_B1)  # clamp has a gradient at z = tau
