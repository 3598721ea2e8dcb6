"""Diverse beam search: a sentence has several beams, called groups, and each group avoids the
tokens that earlier groups have chosen at the same step (Vijayakumar et al. 2016).

    group g keeps the continuations with the highest  log p(y_1 ... y_t | x) - lambda n_t(y_t)

n_t(w) is the number of hypotheses in earlier groups that take token w at step t (the Hamming
diversity of the paper), and lambda is `diversity`. The penalty only decides which continuations a
group keeps. It is no part of the scores, which rank the hypotheses of all groups at the end. With
lambda = 0, all groups find the same hypotheses.

Shapes: B sentences, G groups, K slots of a group, R = B * G * K rows, V target vocabulary, J
candidates of a row.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import torch
from pydantic import model_validator
from torch import Tensor

from seq2seq_attn.config.types import NonNegativeFloat, NumSamples
from seq2seq_attn.errors import UsageError
from seq2seq_attn.model.layers import select_rows, top_tokens
from seq2seq_attn.search import beam
from seq2seq_attn.search.base import Hypothesis, SearchSource, StepModel
from seq2seq_attn.search.beam import Beam, Candidates, add, is_taken, rank_candidates, search_beams
from seq2seq_attn.search.loop import Ranked


class Options(beam.Options):
    """The options of a beam search whose slots are divided into groups."""

    num_groups: NumSamples | None = None
    """Groups of beam_size / N slots. None: a group for each slot, which gives the most
    diversity."""
    diversity: NonNegativeFloat = 0.5
    """Penalty in nats for each hypothesis of an earlier group that has the same token at the same
    step."""

    @model_validator(mode="after")
    def _check_groups(self) -> Options:
        if self.num_groups is not None and self.beam_size % self.num_groups:
            sizes = f"num_groups={self.num_groups}: does not divide beam_size={self.beam_size}"
            raise UsageError(f"{sizes} (in a validation, train.validation.beam_size)")
        return self


def search(model: StepModel[Any], source: SearchSource, options: Options) -> list[list[Hypothesis]]:
    """Return up to `n_best` different hypotheses per sentence."""
    num_groups = options.num_groups or options.beam_size
    choose = partial(choose_diverse, num_groups=num_groups, diversity=options.diversity)
    num_slots = options.beam_size // num_groups
    beams = search_beams(
        model,
        source,
        options,
        choose,
        num_slots=num_slots,
        num_beams=num_groups,
        keeps_scores=True,
    )
    groups = [beams[start : start + num_groups] for start in range(0, len(beams), num_groups)]
    return [_merge(group)[: options.n_best] for group in groups]


def choose_diverse(beams: Beam, ranked: Ranked, *, num_groups: int, diversity: float) -> Candidates:
    """Choose the continuations of each group in turn.

    The groups of a sentence are adjacent beams of `beams`.
    """
    num_slots = beams.totals_BK.shape[1]
    scores_RV = ranked.scores()
    rows_BGK = torch.arange(len(scores_RV), device=scores_RV.device).view(-1, num_groups, num_slots)
    taken_BV = scores_RV.new_zeros(len(rows_BGK), scores_RV.shape[1])
    chosen = []
    for group in range(num_groups):
        rows_R = rows_BGK[:, group].flatten()
        group_beams = select_rows(beams, rows_R[::num_slots] // num_slots)
        penalty_RV = diversity * taken_BV.repeat_interleave(num_slots, dim=0)
        ranks_RJ, ids_RJ = top_tokens(scores_RV[rows_R] - penalty_RV, num_slots)
        scores_RJ = scores_RV[rows_R].gather(1, ids_RJ)
        order_BK = rank_candidates(group_beams, ranks_RJ)[:, :num_slots]
        totals_BK = add(group_beams.totals_BK, scores_RJ).gather(1, order_BK)
        is_taken_BK = is_taken(group_beams, totals_BK)
        ids_BK = ids_RJ.view(len(order_BK), -1).gather(1, order_BK)
        taken_BV.scatter_add_(1, ids_BK, is_taken_BK.float())
        chosen.append(Candidates(ids_RJ, scores_RJ, order_BK))
    fields = [_interleave(values, len(rows_BGK)) for values in zip(*chosen, strict=True)]
    return Candidates(*fields)


def _interleave(groups: Sequence[Tensor], num_sentences: int) -> Tensor:
    """Return the rows of all groups such that the rows of a sentence are adjacent."""
    rows = [values.view(num_sentences, -1, values.shape[1]) for values in groups]
    return torch.stack(rows, dim=1).flatten(0, 2)


def _merge(groups: Sequence[Sequence[Hypothesis]]) -> list[Hypothesis]:
    """Return the different hypotheses of all groups, finished hypotheses first, best first."""
    different = {}
    for group in groups:
        for hypothesis in group:
            different[tuple(hypothesis.ids)] = hypothesis
    return sorted(
        different.values(), key=lambda hypothesis: (not hypothesis.is_finished, -hypothesis.score)
    )
