"""1.5-entmax: halfway between softmax and sparsemax (Peters, Niculae, Martins 2019, section 3.2 and
algorithm 2).

    entmax(z) = max(z / 2 - tau(z), 0)^2

The threshold tau makes the weights sum to 1. The gradient follows section 3.3 of the paper: with s
= sqrt(p), dp/dz = diag(s) - s s^T / sum(s).
"""

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from seq2seq_attn.model.layers import wide

OUTSIDE = -2.0
"""a value for padding: it is more than 1 below the largest halved score, which is 0, so the weight
of padding is 0"""


def weights(scores_BS: Tensor, mask_BS: Tensor) -> Tensor:
    """Return `weights_BS`, exactly 0 on padding, in float32 or wider."""
    wide_BS = wide(scores_BS)
    weights_BS: Tensor = _Entmax15.apply(wide_BS, mask_BS)  # type: ignore[no-untyped-call]
    return weights_BS


class _Entmax15(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, scores_BS: Tensor, mask_BS: Tensor) -> Tensor:
        halved_BS = (scores_BS / 2.0).masked_fill(~mask_BS, -torch.inf)
        z_BS = (halved_BS - halved_BS.amax(dim=-1, keepdim=True)).clamp(min=OUTSIDE)
        ordered_BS = z_BS.sort(dim=-1, descending=True).values
        ranks_S = torch.arange(1, z_BS.shape[-1] + 1, device=z_BS.device, dtype=z_BS.dtype)
        mean_BS = ordered_BS.cumsum(dim=-1) / ranks_S
        mean_square_BS = ordered_BS.square().cumsum(dim=-1) / ranks_S
        variance_BS = ranks_S * (mean_square_BS - mean_BS.square())
        tau_BS = mean_BS - ((1.0 - variance_BS) / ranks_S).clamp(min=0.0).sqrt()
        # The size is at least 1, except for NaN scores, whose weights are then NaN.
        size_B1 = (tau_BS <= ordered_BS).sum(dim=-1, keepdim=True)
        weights_BS = (z_BS - tau_BS.gather(-1, size_B1.clamp(min=1) - 1)).clamp(min=0.0).square()
        ctx.save_for_backward(weights_BS)
        return weights_BS

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None]:
        (weights_BS,) = ctx.saved_tensors
        grad_BS = grads[0]
        roots_BS = weights_BS.sqrt()
        grad_scores_BS = grad_BS * roots_BS
        mean_B1 = grad_scores_BS.sum(dim=-1, keepdim=True) / roots_BS.sum(dim=-1, keepdim=True)
        return grad_scores_BS - mean_B1 * roots_BS, None
