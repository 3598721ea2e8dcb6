"""The protocol that search steps through, and the hypotheses that it returns.

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
from seq2seq_attn.text.vocab import BOS, PAD, UNK

StateT = TypeVar("StateT")


class NextTokens(Protocol):
    """Probabilities of the next token of each row."""

    @property
    def weights_RS(self) -> Tensor | None:
        """The attention of the step; None where the model has no choice over source positions to show (the fixed-vector
        arms)."""
        ...

    def top(self, num_candidates: int, *, forbidden: Sequence[int] = (), every: int = 1) -> tuple[Tensor, Tensor]:
        """`log_probs_RJ` (float32) and `ids_RJ` of the most probable tokens that are not forbidden, best first, the
        lower id first among equals; J = min(num_candidates, V). `every` = K: of rows 0, K, 2 K, ... only."""
        ...

    def log_probs(self) -> Tensor:
        """`log_probs_RV` of all tokens, float32; of an output that copies, [R, V + S] with the source positions."""
        ...


class StepModel(Protocol[StateT]):
    """A translation model as search sees it: one decoder step at a time. Rows of a sentence are neighbours: row r
    belongs to sentence r // K."""

    def start(self, source: SourceBatch, rows_per_sentence: int) -> StateT:
        """Encode B sentences and give the state before the first step, with R = B * `rows_per_sentence` rows."""
        ...

    def step(self, prev_ids_R: Tensor, state: StateT) -> tuple[NextTokens, StateT]:
        """Feed the previous tokens (BOS at first)."""
        ...

    def reorder(self, state: StateT, index_R: Tensor) -> StateT:
        """The state whose row i is the old row `index_R[i]`. Whole sentences may leave; a sentence keeps all K rows,
        and each of its rows must come from the same sentence."""
        ...


@dataclass(frozen=True)
class Hypothesis:
    """One translation of one sentence, as ids."""

    ids: list[int]
    """target tokens without BOS and EOS; from the target vocabulary's size on, copies of that source position"""
    log_prob: float
    """sum of the tokens' log-probabilities in nats, EOS included where the hypothesis ended itself"""
    score: float
    """what hypotheses are ranked by: log_prob / length ** length_penalty, length in tokens with EOS"""
    is_finished: bool
    """it ended with EOS"""
    is_cut: bool
    """the length limit decided: it was cut there, or a hypothesis that scored higher was"""
    weights_TS: npt.NDArray[np.float32] | None
    """attention of each step, the EOS step included (T = len(ids) + 1 when finished), over the sentence's own source
    positions (EOS included, no padding); rows sum to 1"""


def forbidden_ids(forbid_unk: bool) -> tuple[int, ...]:
    """Ids that a translation never contains: PAD, BOS and, if asked, UNK."""
    return (PAD, BOS, UNK) if forbid_unk else (PAD, BOS)
