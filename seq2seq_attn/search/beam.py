"""Beam search over many sentences at once.

A beam has K slots, each for one hypothesis. Each step fills the free slots with the best
continuations of the alive hypotheses. A hypothesis that ends with EOS is finished and keeps its
slot, so that the beam narrows as hypotheses finish (as in the decoder of Bahdanau et al.). K = 1 is
therefore greedy search, whatever the length penalty. A sentence leaves the batch when no alive
hypothesis can still beat the worst of its `n_best` finished hypotheses, or when it reaches its
length limit.

    score(y | x) = log p(y | x) / |y|^alpha + beta sum_j log min(sum_t a_tj, 1)

alpha is `length_penalty`, and |y| is the length in target tokens including EOS. beta is
`coverage_penalty`, and a_tj is the attention weight of source position j at step t. The formula is
equation 14 of Wu et al. 2016, section 7, with |y| in place of (5 + |y|) / 6. With scorers, the
total of their scores takes the place of log p(y | x).

A candidate is a token that may continue a hypothesis. A beam has C = K J candidates, numbered row
by row.

Shapes: B beams (one for each sentence still in the batch, or several, see `search_beams`), K slots
of a beam, R = B * K rows, J candidates of a row, C candidates of a beam, N hypotheses returned per
sentence, T tokens so far, S source positions, X any width.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from pydantic import model_validator
from torch import Tensor

from seq2seq_attn.config import SearchConfig
from seq2seq_attn.errors import UsageError
from seq2seq_attn.model.layers import select_rows
from seq2seq_attn.search import greedy
from seq2seq_attn.search.base import Hypothesis, SearchSource, StepModel
from seq2seq_attn.search.loop import Ranked, RankedSteps, Step, finish
from seq2seq_attn.text.vocab import BOS, EOS

LEAST_COVERAGE = 1e-6
"""lower bound on the coverage of a source position, so that its logarithm is finite"""


class Options(SearchConfig):
    """The options of beam search."""

    @model_validator(mode="after")
    def _check_n_best(self) -> Options:
        if self.n_best > self.beam_size:
            raise UsageError(
                f"n_best={self.n_best}: more than beam_size={self.beam_size}; set a larger "
                "beam_size or n_best=1"
            )
        return self


class Beam(NamedTuple):
    """The beams of the sentences still in the batch."""

    sentences_B: Tensor
    """int64, the index of each beam: the index of its sentence, if a sentence has one beam"""
    limits_B: Tensor
    """int64, the maximum number of tokens of a hypothesis, EOS included"""
    tokens_BKT: Tensor
    """int64, the tokens of each slot's hypothesis, BOS first"""
    totals_BK: Tensor
    """float32, the total of the scores of the alive hypothesis in each slot; -inf for a slot
    without an alive hypothesis"""
    log_probs_BK: Tensor
    """float32, the log-probability of the hypothesis in each slot"""
    num_finished_B: Tensor
    """int64, the number of slots taken by finished hypotheses"""
    best_scores_BN: Tensor
    """float32, the scores of the best finished hypotheses, best first; filled up with -inf"""
    coverage_BKS: Tensor | None
    """float32, the sum of attention weights of each source position so far; None without a coverage
    penalty"""


class Candidates(NamedTuple):
    """J tokens that may continue each row, and the choice among the candidates of a beam."""

    ids_RJ: Tensor
    """int64, the candidates of each row"""
    scores_RJ: Tensor
    """float32, the scores of the candidates, which are added to the totals of the rows. They may
    differ from the scores of the step; `log_prob` of a hypothesis stays the model's"""
    order_BK: Tensor
    """int64, the numbers of the candidates that fill the free slots of a beam, in this order"""


Choose = Callable[[Beam, Ranked], Candidates]


def search(model: StepModel[Any], source: SearchSource, options: Options) -> list[list[Hypothesis]]:
    """Return up to `n_best` hypotheses per sentence.

    If fewer than `n_best` hypotheses have finished, hypotheses cut at the length limit follow them.
    The coverage penalty of a model without attention over source positions is 0.
    """
    if options.beam_size == 1 and not options.coverage_penalty:
        return greedy.search(model, source, options)
    return search_beams(
        model, source, options, choose_best, num_slots=options.beam_size, keeps_scores=True
    )


@torch.inference_mode()
def search_beams(
    model: StepModel[Any],
    source: SearchSource,
    options: SearchConfig,
    choose: Choose,
    *,
    num_slots: int,
    num_beams: int = 1,
    keeps_scores: bool = False,
) -> list[list[Hypothesis]]:
    """Run beam search and return the hypotheses of each beam, best first.

    Args:
        choose: returns the continuations of all beams at a step.
        num_slots: number of slots of a beam.
        num_beams: number of beams of a sentence, which are adjacent.
        keeps_scores: whether `choose` returns scores of `ranked` unchanged. Then the search need
            not compute the log-probabilities of all tokens.
    """
    steps_model = RankedSteps(model, source, options)
    beam = _start(source, options, num_slots, num_beams)
    state = steps_model.start(num_slots * num_beams)
    steps = []
    while True:
        ranked, state = steps_model.step(beam.tokens_BKT.flatten(0, 1), state)
        candidates = choose(beam, ranked)
        log_probs_RJ = ranked.log_probs(
            candidates.ids_RJ, candidates.scores_RJ, keeps_scores=keeps_scores
        )
        beam, step = _advance(beam, ranked, candidates, log_probs_RJ, options)
        steps.append(step if source.keeps_weights else step._replace(weights_RS=None))
        is_open_B = _is_open(beam, len(steps), options.length_penalty)
        if num_beams > 1:  # a sentence stays as long as one of its beams is open
            is_open_B = is_open_B.view(-1, num_beams).any(dim=1).repeat_interleave(num_beams)
        open_B = is_open_B.nonzero().squeeze(1)
        if len(open_B) == 0:
            break
        index_BK = open_B.unsqueeze(1) * num_slots + step.parents_BK[open_B]
        state = steps_model.reorder(state, index_BK.flatten())
        if len(open_B) < len(beam.sentences_B):
            beam = select_rows(beam, open_B)
    lengths_B = source.batch.lengths_B.repeat_interleave(num_beams)
    return finish(steps, lengths_B.tolist(), options.n_best, num_beams)


def choose_best(beam: Beam, ranked: Ranked) -> Candidates:
    """Choose the continuations with the highest totals. Ties are broken by slot, then by id."""
    num_slots = beam.totals_BK.shape[1]
    # Before the first step, the slots of a beam are equal, so only slot 0 is ranked.
    is_first = beam.tokens_BKT.shape[2] == 1
    scores_RJ, ids_RJ = ranked.top(num_slots, stride=num_slots if is_first else 1)
    if is_first:
        scores_RJ = scores_RJ.repeat_interleave(num_slots, dim=0)
        ids_RJ = ids_RJ.repeat_interleave(num_slots, dim=0)
    return Candidates(ids_RJ, scores_RJ, rank_candidates(beam, scores_RJ)[:, :num_slots])


def add(sums_BK: Tensor, steps_RJ: Tensor) -> Tensor:
    """Add the values of each row's candidates to the sum of the row, and return `sums_BC`."""
    return (sums_BK.view(-1, 1) + steps_RJ).view(len(sums_BK), -1)


def rank_candidates(beam: Beam, scores_RJ: Tensor) -> Tensor:
    """Return `order_BC`, the numbers of the candidates of each beam, highest total first.

    Ties are broken by the lower number.
    """
    return add(beam.totals_BK, scores_RJ).argsort(dim=1, descending=True, stable=True)


def is_taken(beam: Beam, totals_BK: Tensor) -> Tensor:
    """Return `is_taken_BK`: whether each continuation has a total above -inf and a free slot."""
    num_slots = beam.totals_BK.shape[1]
    num_free_B1 = (num_slots - beam.num_finished_B).unsqueeze(1)
    is_free_BK = torch.arange(num_slots, device=num_free_B1.device) < num_free_B1
    return is_free_BK & (totals_BK > -torch.inf)


def _start(source: SearchSource, options: SearchConfig, num_slots: int, num_beams: int) -> Beam:
    """Return the beams before the first step, with one empty hypothesis each."""
    device = source.batch.ids_BS.device
    sentences_B = torch.arange(len(source.max_lengths_B) * num_beams, device=device)
    # Before the first step, the slots of a beam are equal, so only slot 0 is continued.
    totals_BK = torch.full((len(sentences_B), num_slots), -torch.inf, device=device)
    totals_BK[:, 0] = 0.0
    coverage_BKS = None
    if options.coverage_penalty:
        # Padding counts as covered, so that it adds nothing to the penalty.
        is_padding_BS = ~source.batch.mask_BS.repeat_interleave(num_beams, dim=0)
        coverage_BKS = is_padding_BS.float().unsqueeze(1).repeat(1, num_slots, 1)
    limits_B = torch.tensor(list(source.max_lengths_B), device=device)
    return Beam(
        sentences_B=sentences_B,
        limits_B=limits_B.repeat_interleave(num_beams),
        tokens_BKT=torch.full((len(sentences_B), num_slots, 1), BOS, device=device),
        totals_BK=totals_BK,
        log_probs_BK=torch.zeros_like(totals_BK),
        num_finished_B=torch.zeros_like(sentences_B),
        best_scores_BN=torch.full((len(sentences_B), options.n_best), -torch.inf, device=device),
        coverage_BKS=coverage_BKS,
    )


def _advance(
    beam: Beam, ranked: Ranked, candidates: Candidates, log_probs_RJ: Tensor, options: SearchConfig
) -> tuple[Beam, Step]:
    """Fill the free slots with the chosen candidates, and return the next beams and the step.

    `log_probs_RJ` are the model's log-probabilities of the candidates.
    """
    ids_RJ, scores_RJ, order_BK = candidates
    length = beam.tokens_BKT.shape[2]  # of the extended hypotheses, without BOS
    totals_BK = add(beam.totals_BK, scores_RJ).gather(1, order_BK)
    log_probs_BK = add(beam.log_probs_BK, log_probs_RJ).gather(1, order_BK)
    ids_BK = ids_RJ.view(len(order_BK), -1).gather(1, order_BK)
    parents_BK = order_BK.div(ids_RJ.shape[1], rounding_mode="floor")
    is_taken_BK = is_taken(beam, totals_BK)
    is_ended_BK = is_taken_BK & (ids_BK == EOS)
    is_alive_BK = is_taken_BK & (ids_BK != EOS)
    coverage_BKS, penalty_BK = _covered(
        beam, ranked.tokens.weights_RS, parents_BK, options.coverage_penalty
    )
    scores_BK = totals_BK / length**options.length_penalty + penalty_BK
    step = Step(
        sentences_B=beam.sentences_B,
        parents_BK=parents_BK,
        ids_BK=ids_BK,
        log_probs_BK=log_probs_BK,
        scores_BK=scores_BK,
        is_ended_BK=is_ended_BK,
        is_cut_BK=is_alive_BK & (beam.limits_B <= length).unsqueeze(1),
        weights_RS=ranked.tokens.weights_RS,
    )
    ended_BK = scores_BK.masked_fill(~is_ended_BK, -torch.inf)
    best_BN = torch.cat([beam.best_scores_BN, ended_BK], dim=1)
    tokens_BKT = _from_parents(beam.tokens_BKT, parents_BK)
    beam = beam._replace(
        tokens_BKT=torch.cat([tokens_BKT, ids_BK.unsqueeze(2)], dim=2),
        totals_BK=totals_BK.masked_fill(~is_alive_BK, -torch.inf),
        log_probs_BK=log_probs_BK,
        num_finished_B=beam.num_finished_B + is_ended_BK.sum(dim=1),
        best_scores_BN=best_BN.topk(beam.best_scores_BN.shape[1]).values,
        coverage_BKS=coverage_BKS,
    )
    return beam, step


def _covered(
    beam: Beam, weights_RS: Tensor | None, parents_BK: Tensor, coverage_penalty: float
) -> tuple[Tensor | None, Tensor | float]:
    """Return the coverage after this step and the coverage penalty.

    The penalty of each hypothesis is beta sum_j log min(coverage_j, 1).
    """
    if beam.coverage_BKS is None or weights_RS is None:
        return None, 0.0
    coverage_BKS = beam.coverage_BKS + weights_RS.view(beam.coverage_BKS.shape)
    coverage_BKS = _from_parents(coverage_BKS, parents_BK)
    penalty_BK = coverage_BKS.clamp(LEAST_COVERAGE, 1.0).log().sum(dim=2)
    return coverage_BKS, coverage_penalty * penalty_BK


def _from_parents(values_BKX: Tensor, parents_BK: Tensor) -> Tensor:
    """Select, for each slot, the values of the slot that its hypothesis was in."""
    return values_BKX.gather(1, parents_BK.unsqueeze(2).expand(-1, -1, values_BKX.shape[2]))


def _is_open(beam: Beam, length: int, length_penalty: float) -> Tensor:
    """Return `is_open_B`: whether the search of each beam goes on.

    The search goes on while the beam is below its length limit and an alive hypothesis can still
    beat the worst of the N best finished hypotheses. Totals only fall, and the coverage penalty is
    never positive. So no score can exceed the current total divided by a later length to the power
    of `length_penalty`. This bound is highest at the length limit if `length_penalty` is positive,
    else at the next length.
    """
    best_length_B = beam.limits_B
    if length_penalty <= 0:
        best_length_B = torch.full_like(best_length_B, length + 1)
    attainable_B = beam.totals_BK.amax(dim=1) / best_length_B**length_penalty
    return (attainable_B > beam.best_scores_BN[:, -1]) & (beam.limits_B > length)
