"""Beam search over many sentences at once.

A sentence has K slots. Each step fills its free slots with the best continuations of its alive hypotheses. A hypothesis
that ends with EOS is finished and keeps its slot, so that the beam narrows as hypotheses finish (as in Bahdanau's own
decoder). K = 1 is therefore greedy search, whatever the length penalty. A sentence leaves the batch when no alive
hypothesis can still beat the worst of its `n_best` finished ones, or when it reaches its length limit.

Shapes: B sentences still in the batch, K slots of a sentence, R = B * K rows, J candidates of a row,
N hypotheses returned per sentence.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, TypeVar

import torch
from torch import Tensor

from seq2seq_attn.data.batch import SourceBatch
from seq2seq_attn.search.finish import Step, finish
from seq2seq_attn.search.hypothesis import Hypothesis, StepModel, forbidden_ids
from seq2seq_attn.search.options import SearchOptions
from seq2seq_attn.text.vocab import BOS, EOS

StateT = TypeVar("StateT")


class Beam(NamedTuple):
    """The state of the search, for the sentences still in the batch."""

    sentences_B: Tensor
    """int64, the indices of these sentences"""
    limits_B: Tensor
    """int64, maximum number of tokens of a hypothesis, EOS included"""
    ids_BK: Tensor
    """int64, last tokens"""
    log_probs_BK: Tensor
    """float32, log-probability of the alive hypothesis in each slot; -inf for none"""
    num_finished_B: Tensor
    """int64, slots taken by finished hypotheses"""
    best_scores_BN: Tensor
    """float32, scores of the best finished hypotheses, best first; -inf where there are fewer"""


@torch.inference_mode()
def beam_search(
    model: StepModel[StateT],
    source: SourceBatch,
    options: SearchOptions,
    *,
    max_lengths_B: Sequence[int],
) -> list[list[Hypothesis]]:
    """Up to `options.n_best` hypotheses per sentence, best first, in the batch's order.

    Hypotheses are ranked by log_prob / length ** length_penalty, with the length in target tokens including EOS.
    `max_lengths_B` is the maximum number of tokens of a sentence's hypotheses, EOS included (at least 1). Hypotheses
    cut at that limit follow the finished ones, if too few have finished.
    """
    beam_size, length_penalty = options.beam_size, options.length_penalty
    beam = _start(max_lengths_B, beam_size, options.n_best, source.ids_BS.device)
    state = model.start(source, beam_size)
    steps: list[Step] = []
    while True:
        tokens, state = model.step(beam.ids_BK.flatten(), state)
        every = 1 if steps else beam_size  # before the first step, the slots of a sentence are equal
        best = tokens.top(beam_size, forbidden=forbidden_ids(options.unk == "forbid"), every=every)
        weights_RS = tokens.weights_RS if options.keeps_weights else None
        beam, step = _advance(beam, *best, weights_RS, len(steps) + 1, length_penalty)
        steps.append(step)
        places_B = _is_open(beam, len(steps), length_penalty).nonzero().squeeze(1)
        if len(places_B) == 0:
            break
        state = model.reorder(state, (places_B.unsqueeze(1) * beam_size + step.parents_BK[places_B]).flatten())
        if len(places_B) < len(beam.sentences_B):
            beam = Beam(*(field[places_B] for field in beam))
    return finish(steps, source.lengths_B.tolist(), n_best=options.n_best, length_penalty=length_penalty)


def _start(max_lengths_B: Sequence[int], beam_size: int, n_best: int, device: torch.device) -> Beam:
    num_sentences = len(max_lengths_B)
    # before the first step, the slots of a sentence are equal: only one of them is continued
    log_probs_BK = torch.full((num_sentences, beam_size), -torch.inf, device=device)
    log_probs_BK[:, 0] = 0.0
    return Beam(
        sentences_B=torch.arange(num_sentences, device=device),
        limits_B=torch.tensor(list(max_lengths_B), device=device),
        ids_BK=torch.full((num_sentences, beam_size), BOS, device=device),
        log_probs_BK=log_probs_BK,
        num_finished_B=torch.zeros(num_sentences, dtype=torch.int64, device=device),
        best_scores_BN=torch.full((num_sentences, n_best), -torch.inf, device=device),
    )


def _advance(
    beam: Beam, top_RJ: Tensor, top_ids_RJ: Tensor, weights_RS: Tensor | None, length: int, length_penalty: float
) -> tuple[Beam, Step]:
    """One step: fill the free slots with the best continuations, which are now `length` tokens long. `top_RJ` holds the
    log-probabilities of the best next tokens of each row, and `top_ids_RJ` these tokens; one row per sentence if its
    slots are all equal. Ties are broken by slot, then by id.
    """
    num_sentences, beam_size = beam.log_probs_BK.shape
    num_candidates = top_RJ.shape[1]
    if len(top_RJ) == num_sentences:  # one row for all slots
        top_RJ, top_ids_RJ = (best.repeat_interleave(beam_size, dim=0) for best in (top_RJ, top_ids_RJ))
    # [B, K * J]: slot by slot, in each slot best first
    candidates = (beam.log_probs_BK.view(-1, 1) + top_RJ).view(num_sentences, -1)
    ordered, order = candidates.sort(dim=-1, descending=True, stable=True)
    log_probs_BK, order_BK = ordered[:, :beam_size], order[:, :beam_size]
    parents_BK = order_BK.div(num_candidates, rounding_mode="floor")
    ids_BK = top_ids_RJ.view(num_sentences, -1).gather(1, order_BK)

    num_free_B = beam_size - beam.num_finished_B
    has_slot_BK = torch.arange(beam_size, device=ids_BK.device) < num_free_B.unsqueeze(1)
    is_taken_BK = has_slot_BK & (log_probs_BK > -torch.inf)
    is_ended_BK = is_taken_BK & (ids_BK == EOS)
    is_alive_BK = is_taken_BK & (ids_BK != EOS)
    scores_BK = (log_probs_BK / length**length_penalty).masked_fill(~is_ended_BK, -torch.inf)
    step = Step(
        sentences_B=beam.sentences_B,
        parents_BK=parents_BK,
        ids_BK=ids_BK,
        log_probs_BK=log_probs_BK,
        is_ended_BK=is_ended_BK,
        is_cut_BK=is_alive_BK & (beam.limits_B <= length).unsqueeze(1),
        weights_RS=weights_RS,
    )
    beam = beam._replace(
        ids_BK=ids_BK,
        log_probs_BK=log_probs_BK.masked_fill(~is_alive_BK, -torch.inf),
        num_finished_B=beam.num_finished_B + is_ended_BK.sum(dim=1),
        best_scores_BN=torch.cat([beam.best_scores_BN, scores_BK], dim=1).topk(beam.best_scores_BN.shape[1]).values,
    )
    return beam, step


def _is_open(beam: Beam, length: int, length_penalty: float) -> Tensor:
    """`is_open_B`: the sentence is below its limit, and an alive hypothesis can still beat its worst finished one.

    Log-probabilities only fall. So a hypothesis's score is bounded by its current log-probability taken at the limit's
    length if the penalty is positive, and at the next length if it is negative.
    """
    best_length_B = beam.limits_B if length_penalty > 0 else torch.full_like(beam.limits_B, length + 1)
    attainable_B = beam.log_probs_BK.amax(dim=1) / best_length_B**length_penalty
    return (attainable_B > beam.best_scores_BN[:, -1]) & (beam.limits_B > length)
