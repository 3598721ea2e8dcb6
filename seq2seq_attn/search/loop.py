"""The beginning and the end of every search: rank the next tokens with rules and scorers, and trace
hypotheses back through the recorded steps.

Rules exclude tokens that a translation must not contain, make it begin with its prefix, and stop
n-grams from repeating. The log-probabilities of the other tokens are not renormalized.

A search records each `Step` and copies no tokens or weights while it runs. At the end, the best
hypotheses are traced back from their last token to their first.

Shapes: B sentences, K slots (beams) of a sentence, R = B * K rows, S source positions, P prefix
tokens, V target vocabulary, J candidates of a row, T tokens so far, W n-grams of a row.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from seq2seq_attn.config import SearchConfig
from seq2seq_attn.model.layers import forbid_tokens_
from seq2seq_attn.search.base import (
    Hypothesis,
    NextTokens,
    Scorer,
    SearchSource,
    StepModel,
    TokenScores,
)
from seq2seq_attn.text.vocab import BOS, PAD, UNK

FREE = -1
"""fills `prefixes_RP` after the end of a prefix, where any token may follow"""


class Ranked(NamedTuple):
    """The next tokens of each row with the scores that rank them.

    The scores are the model's log-probabilities, unless rules or scorers change them.
    """

    tokens: NextTokens
    """the next tokens, with scores in place of log-probabilities"""
    forbidden: Sequence[int]
    """ids of excluded tokens whose score in `tokens` is not yet -inf"""
    log_probs_RV: Tensor | None
    """the model's log-probabilities; None if the scores are the log-probabilities"""

    def top(self, num_candidates: int, *, stride: int = 1) -> tuple[Tensor, Tensor]:
        """Return `scores_RJ` and `ids_RJ` of the best tokens (see `NextTokens.top`)."""
        return self.tokens.top(num_candidates, forbidden=self.forbidden, stride=stride)

    def scores(self) -> Tensor:
        """Return `scores_RV` of all tokens; excluded tokens have -inf."""
        scores_RV = self.tokens.log_probs()
        return forbid_tokens_(scores_RV.clone(), self.forbidden) if self.forbidden else scores_RV

    def log_probs(self, ids_RJ: Tensor, scores_RJ: Tensor, *, keeps_scores: bool) -> Tensor:
        """Return the model's log-probabilities of the tokens `ids_RJ`.

        A token is excluded if its score in `scores_RJ` is -inf, and then has -inf here too.

        Args:
            keeps_scores: Whether `scores_RJ` are the scores of this step, unchanged. They are then
                the log-probabilities if neither rules nor scorers change scores.
        """
        log_probs_RV = self.log_probs_RV
        if log_probs_RV is None:
            if keeps_scores:
                return scores_RJ
            log_probs_RV = self.tokens.log_probs()
        return log_probs_RV.gather(1, ids_RJ).masked_fill(scores_RJ == -torch.inf, -torch.inf)


class RankedSteps:
    """The steps of a model with the rules and scorers of a search.

    The state is a tuple of the model's state and the state of each scorer.
    """

    def __init__(self, model: StepModel[Any], source: SearchSource, options: SearchConfig) -> None:
        self._model = model
        self._source = source
        self._forbidden = (PAD, BOS, UNK) if options.unk == "forbid" else (PAD, BOS)
        self._scorers = list(source.scorers)
        if any(source.prefixes) or options.no_repeat_ngram or source.scorers:
            self._scorers.insert(0, Rules(self._forbidden, options.no_repeat_ngram))

    def start(self, rows_per_sentence: int) -> tuple[Any, ...]:
        """Return the state before the first step."""
        states = [self._model.start(self._source.batch, rows_per_sentence)]
        for scorer in self._scorers:
            states.append(scorer.start(self._source, rows_per_sentence))
        return tuple(states)

    def step(self, tokens_RT: Tensor, state: tuple[Any, ...]) -> tuple[Ranked, tuple[Any, ...]]:
        """Return the next tokens and the next state. `tokens_RT` begins with BOS."""
        tokens, model_state = self._model.step(tokens_RT[:, -1], state[0])
        if not self._scorers:
            return Ranked(tokens, self._forbidden, None), (model_state,)
        log_probs_RV = tokens.log_probs()
        scores_RV = log_probs_RV
        states = [model_state]
        for scorer, scorer_state in zip(self._scorers, state[1:], strict=True):
            scorer_state = scorer.read_weights(tokens.weights_RS, scorer_state)
            scores_RV, next_state = scorer.rescore(scores_RV, tokens_RT[:, 1:], scorer_state)
            states.append(next_state)
        return Ranked(TokenScores(scores_RV, tokens.weights_RS), (), log_probs_RV), tuple(states)

    def reorder(self, state: tuple[Any, ...], index_R: Tensor) -> tuple[Any, ...]:
        """Return the state whose row i is the old row `index_R[i]`."""
        states = [self._model.reorder(state[0], index_R)]
        for scorer, scorer_state in zip(self._scorers, state[1:], strict=True):
            states.append(scorer.reorder(scorer_state, index_R))
        return tuple(states)


@dataclass(frozen=True)
class Rules(Scorer):
    """Excludes forbidden tokens and tokens that would repeat an n-gram of `no_repeat_ngram` tokens.

    With `no_repeat_ngram` = 0, n-grams may repeat. A prefix takes precedence over both rules. The
    state is `prefixes_RP`, or None without prefixes.
    """

    forbidden: Sequence[int]
    no_repeat_ngram: int

    def start(self, source: SearchSource, rows_per_sentence: int) -> Tensor | None:
        width = max(map(len, source.prefixes), default=0)
        if not width:
            return None
        rows = [[*prefix, *[FREE] * (width - len(prefix))] for prefix in source.prefixes]
        prefixes_BP = torch.tensor(rows, device=source.batch.ids_BS.device)
        return prefixes_BP.repeat_interleave(rows_per_sentence, dim=0)

    def rescore(
        self, scores_RV: Tensor, tokens_RT: Tensor, state: Tensor | None
    ) -> tuple[Tensor, Tensor | None]:
        allowed_RV = forbid_tokens_(scores_RV.clone(), self.forbidden)
        length = tokens_RT.shape[1]
        n = self.no_repeat_ngram
        if n and length >= n:
            # Exclude each token that would complete an n-gram that the row already has.
            ngrams_RWn = tokens_RT.unfold(1, n, 1)
            is_again_RW = (ngrams_RWn[..., :-1] == tokens_RT[:, None, length - n + 1 :]).all(dim=2)
            ids_RW = ngrams_RWn[..., -1].where(is_again_RW, PAD)  # PAD is forbidden in any case
            allowed_RV.scatter_(1, ids_RW, -torch.inf)
        if state is None or length >= state.shape[1]:
            return allowed_RV, state
        next_R1 = state[:, length].unsqueeze(1)
        ids_R1 = next_R1.clamp(min=0).masked_fill(next_R1 >= scores_RV.shape[1], UNK)
        excluded_RV = torch.full_like(allowed_RV, -torch.inf)
        forced_RV = excluded_RV.scatter(1, ids_R1, scores_RV.gather(1, ids_R1))
        return torch.where(next_R1 == FREE, allowed_RV, forced_RV), state


class Step(NamedTuple):
    """The record of one search step, for the B sentences still in the batch.

    With several beams per sentence (`beam.search_beams`), each beam counts as a sentence here.
    """

    sentences_B: Tensor
    """int64, the indices of the sentences"""
    parents_BK: Tensor
    """int64, for each slot, the slot that its hypothesis was in before this step"""
    ids_BK: Tensor
    """int64, the new token of the hypothesis"""
    log_probs_BK: Tensor
    """float32, the log-probability of the hypothesis, new token included"""
    scores_BK: Tensor
    """float32, the score that ranks the hypothesis if it ends or is cut in this step"""
    is_ended_BK: Tensor
    """bool, whether the hypothesis ended with EOS in this step"""
    is_cut_BK: Tensor
    """bool, whether the hypothesis reached the length limit in this step, without EOS"""
    weights_RS: Tensor | None
    """float32, the attention weights of the step; rows are the slots before the step, so the
    weights of a hypothesis are in the row of its parent"""


class _End(NamedTuple):
    """The step and slot of a hypothesis's last token, and the scores of the hypothesis."""

    step: int
    slot: int
    is_cut: bool
    score: float
    log_prob: float


class _Recorded(NamedTuple):
    """The fields of a `Step` from which hypotheses are traced back."""

    rows: dict[int, int]
    """the row of each sentence in the batch at this step"""
    parents_BK: list[list[int]]
    ids_BK: list[list[int]]
    weights_BKS: npt.NDArray[np.float32] | None


def finish(
    steps: Sequence[Step], lengths_B: Sequence[int], n_best: int, num_beams: int = 1
) -> list[list[Hypothesis]]:
    """Return the `n_best` best hypotheses of each beam, at least one, best first.

    If fewer than `n_best` hypotheses have finished, hypotheses cut at the length limit follow them.
    Ties are broken by the earlier step, then by the lower slot.

    Args:
        steps: the recorded steps of the search.
        lengths_B: the number of source positions of each beam's sentence.
        n_best: the maximum number of hypotheses of a beam.
        num_beams: number of beams of a sentence, which are adjacent. A hypothesis that is cut in
            one beam counts for the `is_cut` of the hypotheses of all beams of the sentence.
    """
    ends_B = _find_ends(steps, len(lengths_B))
    best_cut_B = []
    for ends in ends_B:
        cut_scores = [end.score for end in ends if end.is_cut]
        best_cut_B.append(max(cut_scores, default=-math.inf))
    recorded = [_record(step) for step in steps]
    hypotheses = []
    for sentence, ends in enumerate(ends_B):
        first_beam = sentence - sentence % num_beams
        best_cut = max(best_cut_B[first_beam : first_beam + num_beams])
        num_source = lengths_B[sentence]
        ends.sort(key=lambda end: (end.is_cut, -end.score))
        best = [_trace(recorded, sentence, end, num_source, best_cut) for end in ends[:n_best]]
        hypotheses.append(best or [_empty(recorded, num_source)])
    return hypotheses


def _find_ends(steps: Sequence[Step], num_sentences: int) -> list[list[_End]]:
    """Return the ends of each sentence's hypotheses, in the order of steps, then of slots."""
    ends_B: list[list[_End]] = [[] for _ in range(num_sentences)]
    for number, step in enumerate(steps):
        sentences = step.sentences_B.tolist()
        is_cut_BK = step.is_cut_BK.tolist()
        scores_BK = step.scores_BK.tolist()
        log_probs_BK = step.log_probs_BK.tolist()
        for row, slot in (step.is_ended_BK | step.is_cut_BK).nonzero().tolist():
            end = _End(
                number,
                slot,
                is_cut_BK[row][slot],
                scores_BK[row][slot],
                log_probs_BK[row][slot],
            )
            ends_B[sentences[row]].append(end)
    return ends_B


def _record(step: Step) -> _Recorded:
    """Copy a step from the device into lists and arrays."""
    sentences = step.sentences_B.tolist()
    weights_BKS = None
    if step.weights_RS is not None:
        weights_RS = step.weights_RS.float().cpu().numpy()
        weights_BKS = weights_RS.reshape(*step.ids_BK.shape, -1)
    return _Recorded(
        {sentence: row for row, sentence in enumerate(sentences)},
        step.parents_BK.tolist(),
        step.ids_BK.tolist(),
        weights_BKS,
    )


def _trace(
    steps: Sequence[_Recorded], sentence: int, end: _End, num_source: int, best_cut: float
) -> Hypothesis:
    """Return the hypothesis that ends with `end`.

    `best_cut` is the best score of the sentence's hypotheses that the length limit cut.
    """
    ids = []
    weights = []
    slot = end.slot
    for step in reversed(steps[: end.step + 1]):
        row = step.rows[sentence]
        ids.append(step.ids_BK[row][slot])
        slot = step.parents_BK[row][slot]
        if step.weights_BKS is not None:
            weights.append(step.weights_BKS[row, slot, :num_source])
    ids.reverse()
    weights.reverse()
    return Hypothesis(
        ids=ids if end.is_cut else ids[:-1],  # without EOS
        log_prob=end.log_prob,
        score=end.score,
        is_finished=not end.is_cut,
        is_cut=end.is_cut or end.score < best_cut,
        weights_TS=np.stack(weights) if weights else None,
    )


def _empty(steps: Sequence[_Recorded], num_source: int) -> Hypothesis:
    """Return the hypothesis of a sentence for which every token had probability 0 or NaN."""
    weights_TS = None
    if steps[0].weights_BKS is not None:
        weights_TS = np.zeros((0, num_source), dtype=np.float32)
    return Hypothesis(
        [], -math.inf, -math.inf, is_finished=False, is_cut=False, weights_TS=weights_TS
    )
