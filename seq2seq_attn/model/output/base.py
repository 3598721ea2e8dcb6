"""The contract of outputs: token probabilities from decoder steps, and the loss of a batch.

A variant is a file in this folder with one final class and a function `build`, which `model/build.py` calls.

Shapes: B rows, T steps, N target tokens of a batch, padded to a multiple, S source positions, F features, V target
vocabulary.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import NamedTuple

import torch
from torch import Tensor, nn

from seq2seq_attn.data.batch import Batch
from seq2seq_attn.model.decoder.base import Memory, StepOutput
from seq2seq_attn.model.rows import select_rows

ROWS_AT_ONCE = 1024
"""target tokens whose log-probabilities over the vocabulary are in memory at once"""


class Outputs(NamedTuple):
    """All decoder steps of a batch: the fields of their `StepOutput`s, and where the target tokens are."""

    features_NF: Tensor
    """one row per target token, in the order of `positions_N`"""
    positions_N: Tensor
    """int64, the positions of those tokens in a flattened [T, B]; 0 in padding rows"""
    targets_N: Tensor
    """int64, their ids; PAD in padding rows, which the loss ignores"""
    hidden_TBH: Tensor
    contexts_TBM: Tensor
    embedded_TBE: Tensor
    weights_TBS: Tensor
    memory: Memory

    def rows(self, chosen: slice) -> tuple[StepOutput, Memory]:
        """The steps that predict the chosen target tokens, and the memory of their sentences, row by row."""
        positions_N = self.positions_N[chosen]
        tensors = (self.hidden_TBH, self.contexts_TBM, self.embedded_TBE, self.weights_TBS)
        hidden, context, embedded, weights = (t.flatten(0, 1).index_select(0, positions_N) for t in tensors)
        step = StepOutput(self.features_NF[chosen], hidden, context, embedded, weights, None)
        return step, select_rows(self.memory, positions_N % self.hidden_TBH.shape[1])


class BatchLoss(NamedTuple):
    """Sums over a batch's target tokens, in nats."""

    loss_sum: Tensor
    """0-d, label-smoothed, carries the graph"""
    nll_sum: Tensor
    """0-d, not smoothed, detached"""
    num_tokens: int


class Output(nn.Module, ABC):
    """Probabilities of the target vocabulary. `copies_source` says whether those of source positions follow, by their
    surface ids (`data/surface.py`); such an output reads attention weights over source positions."""

    copies_source: bool = False

    @abstractmethod
    def log_probs(self, step: StepOutput, memory: Memory) -> Tensor:
        """`log_probs_BV` of the next token, in float32 or wider; [B, V + S] with the source positions."""

    def targets(self, outputs: Outputs, batch: Batch) -> Tensor:
        """int64 [N], the target tokens as columns of `log_probs`; PAD in padding rows."""
        return outputs.targets_N

    def target_log_probs(self, outputs: Outputs, batch: Batch) -> Tensor:
        """`log_probs_N` of the target tokens, without gradient."""
        targets_N = self.targets(outputs, batch)
        found = []
        with torch.no_grad():
            for start in range(0, len(targets_N), ROWS_AT_ONCE):
                chosen = slice(start, start + ROWS_AT_ONCE)
                log_probs_NV = self.log_probs(*outputs.rows(chosen))
                found.append(log_probs_NV.gather(1, targets_N[chosen].unsqueeze(1)).squeeze(1))
        return torch.cat(found)

    @abstractmethod
    def loss(self, outputs: Outputs, batch: Batch, *, label_smoothing: float) -> BatchLoss:
        """The cross-entropy of a batch's target tokens."""


def wide(tensor: Tensor) -> Tensor:
    """In float32 or wider."""
    return tensor.to(torch.promote_types(tensor.dtype, torch.float32))
