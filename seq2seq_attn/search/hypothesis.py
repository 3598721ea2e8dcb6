"""What the searches search over, and what they find.

Shapes: B sentences, K rows (beams) of a sentence, R = B * K rows in search, N of those rows, S source positions,
F features, V target vocabulary.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, TypeVar

import numpy as np
import numpy.typing as npt
from torch import Tensor

from seq2seq_attn.data.batch import SourceBatch

StateT = TypeVar("StateT")


class StepModel(Protocol[StateT]):
    """A translation model as search sees it: one decoder step at a time. Rows of a sentence are neighbours: row r
    belongs to sentence r // K."""

    def start(self, source: SourceBatch, rows_per_sentence: int) -> StateT:
        """Encode B sentences and give the state before the first step, with R = B * `rows_per_sentence` rows."""
        ...

    def step(self, prev_ids_R: Tensor, state: StateT) -> tuple[Tensor, StateT]:
        """Feed the previous tokens (BOS at first): `features_RF`, from which the next tokens are told, and the next
        state."""
        ...

    def logits(self, features_NF: Tensor) -> Tensor:
        """`logits_NV` of some rows' features, in float32: log-probabilities of all tokens up to a constant of the row.
        Few rows at a time stay in the processor's cache, so search asks for few."""
        ...

    def reorder(self, state: StateT, index_R: Tensor) -> StateT:
        """The state whose row i is the old row `index_R[i]`. Whole sentences may leave; a sentence keeps all K rows,
        and each of its rows must come from the same sentence."""
        ...

    def weights(self, state: StateT) -> Tensor | None:
        """`weights_RS`, the attention of the step that gave this state; None where the model has no choice over source
        positions to show (the fixed-vector arms)."""
        ...


@dataclass(frozen=True)
class Hypothesis:
    """One translation of one sentence, as ids."""

    ids: list[int]
    """target tokens without BOS and EOS"""
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
