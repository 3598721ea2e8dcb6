"""Softmax over real positions (Bahdanau, Cho, Bengio 2015, section 3.1, eq. 6).

    alpha_ij = exp(e_ij) / sum_k exp(e_ik)

e_ij is the score of source position j at step i; k runs over the real positions, so padding has
weight 0.
"""

import torch
from torch import Tensor

from seq2seq_attn.model.layers import wide


def weights(scores_BS: Tensor, mask_BS: Tensor) -> Tensor:
    """Return `weights_BS`, exactly 0 on padding, in float32 or wider. (Half precision loses small
    weights.)"""
    return torch.softmax(wide(scores_BS).masked_fill(~mask_BS, -torch.inf), dim=-1)
