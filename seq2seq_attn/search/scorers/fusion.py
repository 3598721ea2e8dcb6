"""Shallow fusion with a language model (Gulcehre et al. 2015).

    score(y_t) = log p(y_t | y_<t, x) + weight * log q(y_t | y_<t)

q is a language model: a run without a source (`data.source_language: none`), or a run whose
training pairs all have the same source line. The target vocabularies of q and of the run that
translates must be equal. A token that is copied from the source counts as UNK in q.

Shapes: R rows in search, V target ids and copies of source positions, Q target ids, T tokens so
far.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from seq2seq_attn.config.types import Weight
from seq2seq_attn.data.batch import collate_source
from seq2seq_attn.search.base import Scorer, SearchSource, StepModel
from seq2seq_attn.text.vocab import BOS, UNK

LoadSteps = Callable[[str, str], tuple[StepModel[Any], list[int], int]]
"""takes a run and a source line; returns the steps of the run's model, the ids of the source line,
and the number of target ids"""


@dataclass(frozen=True)
class Fusion(Scorer):
    """Adds the weighted log-probabilities of a language model to the scores."""

    steps: StepModel[Any]
    source_ids: Sequence[int]
    num_ids: int
    weight: float

    def start(self, source: SearchSource, rows_per_sentence: int) -> Any:
        batch = collate_source([self.source_ids] * len(source.max_lengths_B))
        return self.steps.start(batch.to(source.batch.ids_BS.device), rows_per_sentence)

    def rescore(self, scores_RV: Tensor, tokens_RT: Tensor, state: Any) -> tuple[Tensor, Any]:
        """Return the scores with the weighted log q added. Ids from Q on are copies of source
        positions."""
        previous_R = tokens_RT.new_full((len(tokens_RT),), BOS)
        if tokens_RT.shape[1]:
            previous_R = tokens_RT[:, -1]
        known_R = previous_R.masked_fill(previous_R >= self.num_ids, UNK)
        tokens, state = self.steps.step(known_R, state)
        # A language model that copies tokens of its source line has scores from Q on; omit them.
        log_probs_RQ = tokens.log_probs()[:, : self.num_ids]
        num_copied = scores_RV.shape[1] - self.num_ids
        copied = log_probs_RQ[:, UNK : UNK + 1].expand(-1, num_copied)
        return scores_RV + self.weight * torch.cat([log_probs_RQ, copied], dim=1), state

    def reorder(self, state: Any, index_R: Tensor) -> Any:
        return self.steps.reorder(state, index_R)


def build(*, load_steps: LoadSteps, run: str, weight: Weight = 0.2, source: str = "") -> Fusion:
    """Build the scorer.

    Args:
        run: the run directory of the language model.
        weight: the weight of its log-probabilities.
        source: the source line that the language model was trained with, if any.
    """
    return Fusion(*load_steps(run, source), weight=weight)
