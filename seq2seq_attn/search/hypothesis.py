"""The protocol between models and search, and the hypotheses that search returns.

Shapes: B sentences, K rows (beams) of a sentence, R = B * K rows in search, S source positions, V target vocabulary,
J candidates of a row, T target positions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

import numpy as np
import numpy.typing as npt
from torch import Tensor

from seq2seq_attn.data.batch import SourceBatch

StateT = TypeVar("StateT")


class NextTokens(Protocol):
    """Probabilities of the next token of each row."""

    @property
    def weights_RS(self) -> Tensor | None:
        """The attention of the step; None for models without attention over source positions, such as those
        with a fixed vector."""
        ...

    def top(self, num_candidates: int, *, forbidden: Sequence[int] = (), every: int = 1) -> tuple[Tensor, Tensor]:
        """`log_probs_RJ` (float32) and `ids_RJ` of the most probable tokens that are not forbidden, best first, ties by
        the lower id; J = min(num_candidates, V). `every` = K: only for rows 0, K, 2 K, ..."""
        ...

    def log_probs(self) -> Tensor:
        """`log_probs_RV` of all tokens, float32; [R, V + S] with an output that copies source positions."""
        ...


class StepModel(Protocol[StateT]):
    """The interface that search needs from a translation model: one decoder step at a time. Rows of a sentence are
    adjacent: row r belongs to sentence r // K."""

    def start(self, source: SourceBatch, rows_per_sentence: int) -> StateT:
        """Encode B sentences and give the state before the first step, with R = B * `rows_per_sentence` rows."""
        ...

    def step(self, prev_ids_R: Tensor, state: StateT) -> tuple[NextTokens, StateT]:
        """One step after the previous tokens (BOS at first)."""
        ...

    def reorder(self, state: StateT, index_R: Tensor) -> StateT:
        """The state whose row i is the old row `index_R[i]`. Whole sentences may be removed. A sentence
        that stays has K rows, each selected from its own old rows."""
        ...


@dataclass(frozen=True)
class Hypothesis:
    """A translation of a sentence, as ids."""

    ids: list[int]
    """target tokens without BOS and EOS; ids from the target vocabulary's size on are copies of source positions"""
    log_prob: float
    """sum of the tokens' log-probabilities in nats, with EOS if the hypothesis is finished"""
    score: float
    """the score that ranks hypotheses (`beam.py`)"""
    is_finished: bool
    """it ended with EOS"""
    is_cut: bool
    """the length limit cut this hypothesis, or another hypothesis with a higher score"""
    weights_TS: npt.NDArray[np.float32] | None
    """attention of each step, including the EOS step (T = len(ids) + 1 if finished), over the sentence's source
    positions (EOS included, no padding); rows sum to 1"""
