"""Dropout (Srivastava et al. 2014, section 4, with the factor 1 / (1 - rate) in training)."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn


class Dropout(nn.Module):
    """`nn.Dropout` with the faster random numbers of `dropout_mask`."""

    def __init__(self, rate: float) -> None:
        super().__init__()
        self.rate = rate

    def forward(self, inputs: Tensor) -> Tensor:
        """The inputs, in training times a `dropout_mask`."""
        if not self.training or self.rate == 0.0:
            return inputs
        return inputs * dropout_mask(inputs.shape, self.rate, inputs.device, inputs.dtype)


def dropout_mask(shape: tuple[int, ...], rate: float, device: torch.device, dtype: torch.dtype | None = None) -> Tensor:
    """Elements 1 / (1 - rate) with probability 1 - rate, else 0, from the device's global generator. On a CPU the rate
    is rounded to a multiple of 1/65,536."""
    if device.type != "cpu":
        return torch.empty(shape, device=device, dtype=dtype).bernoulli_(1.0 - rate).div_(1.0 - rate)
    # `bernoulli_` draws a number per element; here 64 random bits give four elements, in a tenth of the time
    count = math.prod(shape)
    bits = torch.empty(-(-count // 4), dtype=torch.int64).random_(-(2**63), None).view(torch.int16)[:count]
    num_dropped = round(rate * 65_536)
    keep = (bits >= num_dropped - 32_768).view(shape)
    return keep.to(dtype or torch.get_default_dtype()).mul_(65_536 / (65_536 - num_dropped))
