"""The two ends of every search: next tokens as rules and scorers rank them, and hypotheses from the
recorded steps.

Rules exclude tokens that a translation must not contain, make it begin with its prefix, and stop
n-grams from repeating. The log-probabilities of the rest are not renormalized.

A search records each `Step` and copies nothing while it runs. At the end, all best hypotheses are
traced back from their last token to their first at once.

Shapes: B sentences, K slots (beams) of a sentence, R = B * K rows, S source positions, P prefix
tokens or hypotheses picked, V target vocabulary, J candidates of a row, T steps, W n-grams of a
row.
"""

from collections.abc import Sequence
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

IntArray = npt.NDArray[np.int64]
FREE = -1
"""fills `prefixes_RP` after the end of a prefix"""


class Ranked(NamedTuple):
    """The next tokens of each row with the scores that rank them: the model's log-probabilities,
    unless rules or scorers change them."""

    tokens: NextTokens
    """their scores in place of log-probabilities"""
    forbidden: Sequence[int]
    log_probs_RV: Tensor | None
    """the model's log-probabilities; None: they are the scores"""

    def top(self, num_candidates: int, *, stride: int = 1) -> tuple[Tensor, Tensor]:
        """`scores_RJ` and `ids_RJ` of the best tokens, as `NextTokens.top`."""
        return self.tokens.top(num_candidates, forbidden=self.forbidden, stride=stride)

    def scores(self) -> Tensor:
        """`scores_RV` of all tokens, -inf for those that are excluded."""
        scores_RV = self.tokens.log_probs()
        return forbid_tokens_(scores_RV.clone(), self.forbidden) if self.forbidden else scores_RV

    def log_probs(self, ids_RJ: Tensor, scores_RJ: Tensor) -> Tensor:
        """The model's log-probabilities of tokens with these scores, -inf for those that are
        excluded."""
        if self.log_probs_RV is None:
            return scores_RJ
        return self.log_probs_RV.gather(1, ids_RJ).masked_fill(scores_RJ == -torch.inf, -torch.inf)


class RankedSteps:
    """The steps of a model with the rules and scorers of a search. Its state is the model's and
    that of each scorer."""

    def __init__(self, model: StepModel[Any], source: SearchSource, options: SearchConfig) -> None:
        self._model = model
        self._source = source
        self._forbidden = (PAD, BOS, UNK) if options.unk == "forbid" else (PAD, BOS)
        needs_rules = bool(any(source.prefixes) or options.no_repeat_ngram or source.scorers)
        rules: list[Scorer] = (
            [Rules(self._forbidden, options.no_repeat_ngram)] if needs_rules else []
        )
        self._scorers = [*rules, *source.scorers]

    def start(self, rows_per_sentence: int) -> tuple[Any, ...]:
        """The state before the first step."""
        parts = (scorer.start(self._source, rows_per_sentence) for scorer in self._scorers)
        return self._model.start(self._source.batch, rows_per_sentence), *parts

    def step(self, tokens_RT: Tensor, state: tuple[Any, ...]) -> tuple[Ranked, tuple[Any, ...]]:
        """The next tokens after these, BOS first."""
        tokens, model_state = self._model.step(tokens_RT[:, -1], state[0])
        if not self._scorers:
            return Ranked(tokens, self._forbidden, None), (model_state,)
        log_probs_RV = scores_RV = tokens.log_probs()
        states = [model_state]
        for scorer, part in zip(self._scorers, state[1:], strict=True):
            scores_RV, part = scorer.rescore(scores_RV, tokens_RT[:, 1:], part)
            states.append(part)
        return Ranked(TokenScores(scores_RV, tokens.weights_RS), (), log_probs_RV), tuple(states)

    def reorder(self, state: tuple[Any, ...], index_R: Tensor) -> tuple[Any, ...]:
        movers: list[StepModel[Any] | Scorer] = [self._model, *self._scorers]
        return tuple(
            mover.reorder(part, index_R) for mover, part in zip(movers, state, strict=True)
        )


class Rules(Scorer):
    """Excludes tokens, and completes no n-gram of a given length twice (0: no such rule). The
    prefix takes precedence over both. The state is `prefixes_RP`, None without prefixes."""

    def __init__(self, forbidden: Sequence[int], no_repeat_ngram: int) -> None:
        self._forbidden = forbidden
        self._no_repeat_ngram = no_repeat_ngram

    def start(self, source: SearchSource, rows_per_sentence: int) -> Tensor | None:
        width = max(map(len, source.prefixes), default=0)
        if not width:
            return None
        rows = [[*prefix, *[FREE] * (width - len(prefix))] for prefix in source.prefixes]
        return torch.tensor(rows, device=source.batch.ids_BS.device).repeat_interleave(
            rows_per_sentence, dim=0
        )

    def rescore(
        self, scores_RV: Tensor, tokens_RT: Tensor, state: Tensor | None
    ) -> tuple[Tensor, Tensor | None]:
        allowed_RV = forbid_tokens_(scores_RV.clone(), self._forbidden)
        length = tokens_RT.shape[1]
        n = self._no_repeat_ngram
        if (
            n and length >= n
        ):  # forbid each token that would complete an n-gram which the row already has
            ngrams_RWn = tokens_RT.unfold(1, n, 1)
            is_again_RW = (ngrams_RWn[..., :-1] == tokens_RT[:, None, length - n + 1 :]).all(dim=2)
            ids_RW = ngrams_RWn[..., -1].where(is_again_RW, PAD)  # PAD is forbidden in any case
            allowed_RV.scatter_(1, ids_RW, -torch.inf)
        if state is None or length >= state.shape[1]:
            return allowed_RV, state
        next_R1 = state[:, length].unsqueeze(1)
        ids_R1 = next_R1.clamp(min=0).masked_fill(next_R1 >= scores_RV.shape[1], UNK)
        forced_RV = torch.full_like(allowed_RV, -torch.inf).scatter(
            1, ids_R1, scores_RV.gather(1, ids_R1)
        )
        return torch.where(next_R1 == FREE, allowed_RV, forced_RV), state


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


def finish(
    steps: Sequence[Step], lengths_B: Sequence[int], n_best: int, num_beams: int = 1
) -> list[list[Hypothesis]]:
    """The `n_best` best hypotheses of each sentence, best first: finished ones, then, if there are
    too few, those cut at the length limit. Ties are broken by the earlier step, then the lower
    slot. Each sentence has at least one. Each sentence has `num_beams` beams, one after another: if
    one is cut, that counts for all."""
    kept = _keep(steps, num_sentences=len(lengths_B))
    ends = [_rank_ends(kept, b) for b in range(len(lengths_B))]
    picks_P = [(b, *end) for b, (ended, cut) in enumerate(ends) for end in [*ended, *cut][:n_best]]
    ids_PT, rows_PT = _trace(kept, *np.array(picks_P, dtype=np.int64).reshape(-1, 3).T)
    weights_PTS = _gather_weights(steps, rows_PT)
    best_cut_B = np.where(kept.is_cut_TBK, kept.scores_TBK, -np.inf).max(axis=(0, 2))
    best_cut_B = best_cut_B.reshape(-1, num_beams).max(axis=1).repeat(num_beams)
    hypotheses: list[list[Hypothesis]] = [[] for _ in lengths_B]
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
                weights_TS=None
                if weights_PTS is None
                else weights_PTS[p, : last + 1, : lengths_B[b]].copy(),
            )
        )
    for num_source, best in zip(lengths_B, hypotheses, strict=True):
        if (
            not best
        ):  # every token had probability 0, or NaN: return the empty hypothesis with log-prob -inf
            weights_TS = (
                None if weights_PTS is None else np.zeros((0, num_source), dtype=np.float32)
            )
            best.append(Hypothesis([], float("-inf"), float("-inf"), False, False, weights_TS))
    return hypotheses


def _keep(steps: Sequence[Step], num_sentences: int) -> _Kept:
    shape = (len(steps), num_sentences, steps[0].ids_BK.shape[1])
    index_TB = np.zeros(shape[:2], dtype=np.int64)
    fields = [
        np.zeros(shape, dtype=kind)
        for kind in (np.int64, np.int64, np.float32, np.float32, np.bool_, np.bool_)
    ]
    for t, (sentences_B, *parts, _) in enumerate(steps):
        rows = sentences_B.cpu().numpy()
        index_TB[t, rows] = np.arange(len(rows))
        for field, part_BK in zip(fields, parts, strict=True):
            field[t, rows] = part_BK.cpu().numpy()
    return _Kept._make([*fields, index_TB])


def _rank_ends(kept: _Kept, sentence: int) -> tuple[list[tuple[int, int]], ...]:
    """(step, slot) of the last token of the sentence's finished and of its cut hypotheses, each
    best first."""
    ends = []
    for is_end_TK in (kept.is_ended_TBK[:, sentence], kept.is_cut_TBK[:, sentence]):
        steps, slots = np.nonzero(is_end_TK)
        order = np.argsort(-kept.scores_TBK[steps, sentence, slots], kind="stable")
        ends.append(list(zip(steps[order].tolist(), slots[order].tolist(), strict=True)))
    return tuple(ends)


def _trace(
    kept: _Kept, sentence_P: IntArray, last_P: IntArray, slot_P: IntArray
) -> tuple[IntArray, IntArray]:
    """The tokens of each hypothesis, and at each step the row with its attention weights (-1 after
    its end)."""
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
