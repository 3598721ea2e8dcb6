"""Run several GRUs as one batched recurrence, with the backward pass of `gru.py`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import cast

import torch
from torch import Tensor

from seq2seq_attn.model.cell.base import Cell
from seq2seq_attn.model.cell.gru import GRU
from seq2seq_attn.model.fast.gru import gru_unroll
from seq2seq_attn.model.speed import offer


@offer("recurrence")
def offer_recurrence(cells: Sequence[Cell]) -> Callable[[Sequence[Tensor]], list[Tensor]] | None:
    """Offer the batched recurrence for GRUs of equal hidden size."""
    if not all(type(cell) is GRU for cell in cells) or len({cell.hidden_size for cell in cells}) > 1:
        return None
    grus = cast(Sequence[GRU], cells)
    return lambda gates: _run(grus, gates)


def _run(cells: Sequence[GRU], gates: Sequence[Tensor]) -> list[Tensor]:
    weight_DPH = torch.stack([cell.recurrent_weight_PH for cell in cells])
    bias_DP = torch.stack([cell.recurrent_bias_P for cell in cells])
    gates_SDBP = torch.stack(list(gates), dim=1)
    hidden_DBH = weight_DPH.new_zeros(len(cells), gates_SDBP.shape[2], weight_DPH.shape[-1])
    return list(gru_unroll(gates_SDBP, hidden_DBH, weight_DPH, bias_DP).unbind(1))
