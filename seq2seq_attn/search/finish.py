"""Backtrace: from the recorded steps of a search to hypotheses.

A search records each `Step` and copies nothing while it runs. At the end, all best hypotheses are traced back from
their last token to their first at once.

Shapes: B sentences, K slots (beams) of a sentence, R = B * K rows, S source positions, T steps, P hypotheses picked.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from seq2seq_attn.search.base import Hypothesis

IntArray = npt.NDArray[np.int64]


class Step(NamedTuple):
    """One search step, for the B sentences still in the batch."""

    sentences_B: Tensor
    """int64, the indices of these sentences"""
    parents_BK: Tensor
    """int64, for each slot, the slot that its hypothesis was in before this step"""
    ids_BK: Tensor
    """int64, its new token"""
    log_probs_BK: Tensor
    """float32, its log-probability up to this token"""
    scores_BK: Tensor
    """float32, the score that ranks it, if it ends or is cut here"""
    is_ended_BK: Tensor
    """bool, it ended with EOS in this step"""
    is_cut_BK: Tensor
    """bool, it reached the length limit in this step, without EOS"""
    weights_RS: Tensor | None
    """float32, the attention of the step, in the rows before the step"""


class _Kept(NamedTuple):
    """The fields of all steps as arrays over all sentences."""

    parents_TBK: IntArray
    ids_TBK: IntArray
    log_probs_TBK: npt.NDArray[np.float32]
    scores_TBK: npt.NDArray[np.float32]
    is_ended_TBK: npt.NDArray[np.bool_]
    is_cut_TBK: npt.NDArray[np.bool_]
    index_TB: IntArray
    """the sentence's index in the batch at that step"""


def finish(steps: Sequence[Step], source_lengths_B: Sequence[int], *, n_best: int) -> list[list[Hypothesis]]:
    """The `n_best` best hypotheses of each sentence, best first: finished ones, then, if there are too few, those cut
    at the length limit. Ties are broken by the earlier step, then the lower slot. Each sentence has at least one."""
    kept = _keep(steps, num_sentences=len(source_lengths_B))
    ends = [_rank_ends(kept, b) for b in range(len(source_lengths_B))]
    picks_P = [(b, *end) for b, (ended, cut) in enumerate(ends) for end in [*ended, *cut][:n_best]]
    ids_PT, rows_PT = _trace(kept, *np.array(picks_P, dtype=np.int64).reshape(-1, 3).T)
    weights_PTS = _gather_weights(steps, rows_PT)
    best_cut_B = [
        max((kept.scores_TBK[step, b, slot] for step, slot in cut), default=-np.inf) for b, (_, cut) in enumerate(ends)
    ]
    hypotheses: list[list[Hypothesis]] = [[] for _ in source_lengths_B]
    for p, (b, last, slot) in enumerate(picks_P):
        is_finished = bool(kept.is_ended_TBK[last, b, slot])
        score = float(kept.scores_TBK[last, b, slot])
        hypotheses[b].append(
            Hypothesis(
                ids=ids_PT[p, : last + 1 - is_finished].tolist(),
                log_prob=float(kept.log_probs_TBK[last, b, slot]),
                score=score,
                is_finished=is_finished,
                is_cut=not is_finished or bool(score < best_cut_B[b]),
                weights_TS=None if weights_PTS is None else weights_PTS[p, : last + 1, : source_lengths_B[b]].copy(),
            )
        )
    for num_source, best in zip(source_lengths_B, hypotheses, strict=True):
        if not best:  # every token had probability 0, or NaN: return the empty hypothesis with log-prob -inf
            weights_TS = None if weights_PTS is None else np.zeros((0, num_source), dtype=np.float32)
            best.append(Hypothesis([], float("-inf"), float("-inf"), False, False, weights_TS))
    return hypotheses


def _keep(steps: Sequence[Step], num_sentences: int) -> _Kept:
    shape = (len(steps), num_sentences, steps[0].ids_BK.shape[1])
    index_TB = np.zeros(shape[:2], dtype=np.int64)
    fields = [np.zeros(shape, dtype=kind) for kind in (np.int64, np.int64, np.float32, np.float32, np.bool_, np.bool_)]
    for t, (sentences_B, *parts, _) in enumerate(steps):
        rows = sentences_B.cpu().numpy()
        index_TB[t, rows] = np.arange(len(rows))
        for field, part_BK in zip(fields, parts, strict=True):
            field[t, rows] = part_BK.cpu().numpy()
    return _Kept._make([*fields, index_TB])


def _rank_ends(kept: _Kept, sentence: int) -> tuple[list[tuple[int, int]], ...]:
    """(step, slot) of the last token of the sentence's finished and of its cut hypotheses, each best first."""
    ends = []
    for is_end_TK in (kept.is_ended_TBK[:, sentence], kept.is_cut_TBK[:, sentence]):
        steps, slots = np.nonzero(is_end_TK)
        order = np.argsort(-kept.scores_TBK[steps, sentence, slots], kind="stable")
        ends.append(list(zip(steps[order].tolist(), slots[order].tolist(), strict=True)))
    return tuple(ends)


def _trace(kept: _Kept, sentence_P: IntArray, last_P: IntArray, slot_P: IntArray) -> tuple[IntArray, IntArray]:
    """The tokens of each hypothesis, and at each step the row with its attention weights (-1 after its end)."""
    num_steps, _, num_slots = kept.ids_TBK.shape
    ids_PT = np.zeros((len(sentence_P), num_steps), dtype=np.int64)
    rows_PT = np.full_like(ids_PT, -1)
    for t in range(num_steps - 1, -1, -1):
        is_in_P = last_P >= t
        parents_P = kept.parents_TBK[t, sentence_P, slot_P]
        ids_PT[:, t] = kept.ids_TBK[t, sentence_P, slot_P]
        rows_PT[:, t] = np.where(is_in_P, kept.index_TB[t, sentence_P] * num_slots + parents_P, -1)
        slot_P = np.where(is_in_P, parents_P, slot_P)
    return ids_PT, rows_PT


def _gather_weights(steps: Sequence[Step], rows_PT: IntArray) -> npt.NDArray[np.float32] | None:
    weights = [step.weights_RS for step in steps if step.weights_RS is not None]
    if len(weights) < len(steps):
        return None
    weights_PTS = np.zeros((*rows_PT.shape, weights[0].shape[1]), dtype=np.float32)
    for t, weights_RS in enumerate(weights):
        longer = np.flatnonzero(rows_PT[:, t] >= 0)
        index = torch.from_numpy(rows_PT[longer, t]).to(weights_RS.device)
        weights_PTS[longer, t] = weights_RS[index].float().cpu().numpy()
    return weights_PTS
