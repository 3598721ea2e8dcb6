"""An ensemble: several models that translate as one (Sutskever, Vinyals, Le 2014, section 3.6).

    log p(y_t | y_<t, x) = log 1/N sum_n p_n(y_t | y_<t, x)

The models may differ in everything but their vocabularies and whether their outputs copy source tokens. The attention
is the mean over the models that have attention over source positions.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from seq2seq_attn.data.batch import SourceBatch
from seq2seq_attn.search.base import StepModel
from seq2seq_attn.search.steps import LogProbs


class Ensemble:
    """A `StepModel` of step models; its state is the tuple of theirs."""

    def __init__(self, models: Sequence[StepModel[Any]]) -> None:
        self._models = list(models)

    def start(self, source: SourceBatch, rows_per_sentence: int) -> tuple[Any, ...]:
        """See `StepModel.start`."""
        return tuple(model.start(source, rows_per_sentence) for model in self._models)

    def step(self, prev_ids_R: Tensor, state: tuple[Any, ...]) -> tuple[LogProbs, tuple[Any, ...]]:
        """See `StepModel.step`."""
        steps = [model.step(prev_ids_R, own) for model, own in zip(self._models, state, strict=True)]
        log_probs = torch.stack([tokens.log_probs() for tokens, _ in steps])
        weights = [tokens.weights_RS for tokens, _ in steps if tokens.weights_RS is not None]
        mean_RV = log_probs.logsumexp(dim=0) - math.log(len(steps))
        mean_RS = torch.stack(weights).mean(dim=0) if weights else None
        return LogProbs(mean_RV, mean_RS), tuple(own for _, own in steps)

    def reorder(self, state: tuple[Any, ...], index_R: Tensor) -> tuple[Any, ...]:
        """See `StepModel.reorder`."""
        return tuple(model.reorder(own, index_R) for model, own in zip(self._models, state, strict=True))
