"""Beam search over many sentences at once.

A sentence has K slots. Each step fills its free slots with the best continuations of its alive hypotheses. A hypothesis
that ends with EOS is finished and keeps its slot, so that the beam narrows as hypotheses finish (as in Bahdanau's own
decoder). K = 1 is therefore greedy search, whatever the length penalty. A sentence leaves the batch when no alive
hypothesis can still beat the worst of its `n_best` finished ones, or when it reaches its length limit.

    score(y | x) = log p(y | x) / |y|^alpha + beta sum_j log min(sum_t a_tj, 1)

alpha is `length_penalty`, with the length in target tokens including EOS, beta is `coverage_penalty` (Wu et al. 2016,
section 7, equation 14, but with |y| in place of (5 + |y|) / 6), a_tj the attention weight of source position j at step
t.

Shapes: B sentences still in the batch, K slots of a sentence, R = B * K rows, J candidates of a row,
N hypotheses returned per sentence, T tokens so far, S source positions.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from seq2seq_attn.data.batch import SourceBatch
from seq2seq_attn.model.rows import select_rows
from seq2seq_attn.search.finish import Step, finish
from seq2seq_attn.search.hypothesis import Hypothesis, StateT, StepModel
from seq2seq_attn.search.options import SearchOptions
from seq2seq_attn.search.rules import Rules
from seq2seq_attn.text.vocab import BOS, EOS

LEAST_COVERAGE = 1e-6
"""lower bound on the coverage of a source position, so that its logarithm is finite"""


class Beam(NamedTuple):
    """The state of the search, for the sentences still in the batch."""

    sentences_B: Tensor
    """int64, the indices of these sentences"""
    limits_B: Tensor
    """int64, maximum number of tokens of a hypothesis, EOS included"""
    tokens_BKT: Tensor
    """int64, the tokens of each slot's hypothesis, BOS first"""
    log_probs_BK: Tensor
    """float32, log-probability of the alive hypothesis in each slot; -inf for none"""
    num_finished_B: Tensor
    """int64, slots taken by finished hypotheses"""
    best_scores_BN: Tensor
    """float32, scores of the best finished hypotheses, best first; -inf where there are fewer"""
    is_source_BS: Tensor
    coverage_BKS: Tensor | None
    """float32, the attention that each source position has had; None without a coverage penalty"""


@torch.inference_mode()
def beam_search(
    model: StepModel[StateT],
    source: SourceBatch,
    options: SearchOptions,
    *,
    max_lengths_B: Sequence[int],
    prefixes: Sequence[Sequence[int]] | None = None,
) -> list[list[Hypothesis]]:
    """Up to `options.n_best` hypotheses per sentence, best first, in the batch's order.

    `max_lengths_B` is the maximum number of tokens of a sentence's hypotheses, EOS included (at least 1). Hypotheses
    cut at that limit follow the finished ones, if too few have finished. `prefixes` are the ids that each sentence's
    hypotheses begin with. A model without attention over source positions has no coverage penalty.
    """
    beam_size = options.beam_size
    rules = Rules.of(options, prefixes, source.ids_BS.device)
    beam = _start(max_lengths_B, source, options)
    state = model.start(source, beam_size)
    steps: list[Step] = []
    while True:
        tokens, state = model.step(beam.tokens_BKT[..., -1].flatten(), state)
        every = 1 if steps else beam_size  # before the first step, the slots of a sentence are equal
        best = rules.top(
            tokens,
            beam_size,
            sentences_R=beam.sentences_B.repeat_interleave(beam_size)[::every],
            tokens_RT=beam.tokens_BKT.flatten(0, 1)[::every, 1:],
            every=every,
        )
        beam, step = _advance(beam, *best, tokens.weights_RS, len(steps) + 1, options)
        steps.append(step if options.keeps_weights else step._replace(weights_RS=None))
        open_B = _is_open(beam, len(steps), options.length_penalty).nonzero().squeeze(1)
        if len(open_B) == 0:
            break
        state = model.reorder(state, (open_B.unsqueeze(1) * beam_size + step.parents_BK[open_B]).flatten())
        if len(open_B) < len(beam.sentences_B):
            beam = select_rows(beam, open_B)
    return finish(steps, source.lengths_B.tolist(), n_best=options.n_best)


def _start(max_lengths_B: Sequence[int], source: SourceBatch, options: SearchOptions) -> Beam:
    num_sentences, beam_size, device = len(max_lengths_B), options.beam_size, source.ids_BS.device
    # before the first step, the slots of a sentence are equal: only one of them is continued
    log_probs_BK = torch.full((num_sentences, beam_size), -torch.inf, device=device)
    log_probs_BK[:, 0] = 0.0
    shape_BKS = (num_sentences, beam_size, source.ids_BS.shape[1])
    return Beam(
        sentences_B=torch.arange(num_sentences, device=device),
        limits_B=torch.tensor(list(max_lengths_B), device=device),
        tokens_BKT=torch.full((num_sentences, beam_size, 1), BOS, device=device),
        log_probs_BK=log_probs_BK,
        num_finished_B=torch.zeros(num_sentences, dtype=torch.int64, device=device),
        best_scores_BN=torch.full((num_sentences, options.n_best), -torch.inf, device=device),
        is_source_BS=source.mask_BS,
        coverage_BKS=torch.zeros(shape_BKS, device=device) if options.coverage_penalty else None,
    )


def _advance(
    beam: Beam,
    top_RJ: Tensor,
    top_ids_RJ: Tensor,
    weights_RS: Tensor | None,
    length: int,
    options: SearchOptions,
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
    coverage_BKS, penalty_BK = _covered(beam, weights_RS, parents_BK, options.coverage_penalty)
    scores_BK = log_probs_BK / length**options.length_penalty + penalty_BK
    step = Step(
        sentences_B=beam.sentences_B,
        parents_BK=parents_BK,
        ids_BK=ids_BK,
        log_probs_BK=log_probs_BK,
        scores_BK=scores_BK,
        is_ended_BK=is_ended_BK,
        is_cut_BK=is_alive_BK & (beam.limits_B <= length).unsqueeze(1),
        weights_RS=weights_RS,
    )
    best_BN = torch.cat([beam.best_scores_BN, scores_BK.masked_fill(~is_ended_BK, -torch.inf)], dim=1)
    beam = beam._replace(
        tokens_BKT=torch.cat([_of_parents(beam.tokens_BKT, parents_BK), ids_BK.unsqueeze(2)], dim=2),
        log_probs_BK=log_probs_BK.masked_fill(~is_alive_BK, -torch.inf),
        num_finished_B=beam.num_finished_B + is_ended_BK.sum(dim=1),
        best_scores_BN=best_BN.topk(beam.best_scores_BN.shape[1]).values,
        coverage_BKS=coverage_BKS,
    )
    return beam, step


def _covered(
    beam: Beam, weights_RS: Tensor | None, parents_BK: Tensor, coverage_penalty: float
) -> tuple[Tensor | None, Tensor | float]:
    """The coverage of each hypothesis with this step's weights, and beta sum_j log min(coverage_j, 1)."""
    if beam.coverage_BKS is None or weights_RS is None:
        return None, 0.0
    coverage_BKS = _of_parents(beam.coverage_BKS + weights_RS.view(beam.coverage_BKS.shape), parents_BK)
    logs_BKS = coverage_BKS.clamp(LEAST_COVERAGE, 1.0).log()
    return coverage_BKS, coverage_penalty * logs_BKS.masked_fill(~beam.is_source_BS.unsqueeze(1), 0.0).sum(dim=2)


def _of_parents(of_slots_BKX: Tensor, parents_BK: Tensor) -> Tensor:
    return of_slots_BKX.gather(1, parents_BK.unsqueeze(2).expand(-1, -1, of_slots_BKX.shape[2]))


def _is_open(beam: Beam, length: int, length_penalty: float) -> Tensor:
    """`is_open_B`: the sentence is below its limit, and an alive hypothesis can still beat its worst finished one.

    Log-probabilities only fall. So a hypothesis's score is bounded by its current log-probability taken at the limit's
    length if the penalty is positive, and at the next length if it is negative. The coverage penalty is never positive.
    """
    best_length_B = beam.limits_B if length_penalty > 0 else torch.full_like(beam.limits_B, length + 1)
    attainable_B = beam.log_probs_BK.amax(dim=1) / best_length_B**length_penalty
    return (attainable_B > beam.best_scores_BN[:, -1]) & (beam.limits_B > length)
