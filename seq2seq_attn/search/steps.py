"""The steps of a search: a model's plain steps or its fast path, several models as one, and the rules and scorers that
rank the next tokens.

Rules exclude tokens that a translation must not contain, make it begin with its prefix, and stop n-grams from
repeating. The log-probabilities of the rest are not renormalized.

Shapes: B sentences, K rows of a sentence, R = B * K rows, S source positions, P prefix tokens, V target vocabulary,
J candidates of a row, T tokens so far, W n-grams of a row.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from seq2seq_attn.config import SearchConfig
from seq2seq_attn.data.batch import SourceBatch
from seq2seq_attn.errors import UsageError
from seq2seq_attn.model import speed
from seq2seq_attn.model.decoder.base import Memory
from seq2seq_attn.model.seq2seq import Seq2Seq
from seq2seq_attn.model.tensors import select_rows
from seq2seq_attn.model.top_tokens import forbid_tokens_, top_tokens
from seq2seq_attn.runtime.precision import Precision
from seq2seq_attn.search.base import NextTokens, Scorer, SearchSource, StepModel
from seq2seq_attn.text.vocab import BOS, PAD, UNK

FREE = -1
"""fills `prefixes_RP` after the end of a prefix"""


def step_model(model: Seq2Seq, precision: Precision = "fp32") -> StepModel[Any]:
    """The fastest `StepModel` of a model, with its current weights.

    Raises:
        UsageError: `int8` for a model without a fast path.
    """
    fast = speed.find("steps", model, precision)
    if fast is not None:
        steps: StepModel[Any] = fast()
        return steps
    if precision == "int8":
        raise UsageError(
            "precision 'int8': not supported for this decoder, cell, attention and output; use bf16 or fp32"
        )
    return PlainSteps(model, precision)


class State(NamedTuple):
    """The search state: the decoder's state and memory, both with R rows."""

    decoder: Any
    memory: Memory
    rows_per_sentence: int


class PlainSteps:
    """The model's own steps."""

    def __init__(self, model: Seq2Seq, precision: Precision = "fp32") -> None:
        self._model, self._is_bf16 = model, precision == "bf16"

    def start(self, source: SourceBatch, rows_per_sentence: int) -> State:
        """See `StepModel.start`."""
        with self._autocast(source.ids_BS):
            memory, state = self._model.prepare(source)
        if rows_per_sentence > 1:
            sentences_B = torch.arange(len(source.ids_BS), device=source.ids_BS.device)
            rows_R = sentences_B.repeat_interleave(rows_per_sentence)
            memory, state = select_rows(memory, rows_R), select_rows(state, rows_R)
        return State(state, memory, rows_per_sentence)

    def step(self, prev_ids_R: Tensor, state: State) -> tuple[LogProbs, State]:
        """See `StepModel.step`."""
        with self._autocast(prev_ids_R):
            step = self._model.step(prev_ids_R, state.decoder, state.memory)
            log_probs_RV = self._model.output.log_probs(step, state.memory)
        weights_RS = step.weights_BS if self._model.has_attention else None
        return LogProbs(log_probs_RV.float(), weights_RS), state._replace(decoder=step.state)

    def reorder(self, state: State, index_R: Tensor) -> State:
        """See `StepModel.reorder`. The rows of a sentence have equal copies of its memory, so it need not move until
        sentences leave."""
        memory, rows = state.memory, state.rows_per_sentence
        sentences = index_R[::rows] // rows
        if not torch.equal(sentences, torch.arange(len(memory.source_ids_BS) // rows, device=index_R.device)):
            memory = select_rows(memory, index_R)
        return State(select_rows(state.decoder, index_R), memory, rows)

    def _autocast(self, tensor: Tensor) -> torch.autocast:
        return torch.autocast(tensor.device.type, dtype=torch.bfloat16, enabled=self._is_bf16)


class LogProbs:
    """`NextTokens` with all log-probabilities."""

    def __init__(self, log_probs_RV: Tensor, weights_RS: Tensor | None) -> None:
        self._log_probs_RV = log_probs_RV
        self.weights_RS = weights_RS

    def top(self, num_candidates: int, *, forbidden: Sequence[int] = (), stride: int = 1) -> tuple[Tensor, Tensor]:
        """See `NextTokens.top`."""
        log_probs_RV = self._log_probs_RV[::stride]
        return top_tokens(
            forbid_tokens_(log_probs_RV.clone(), forbidden) if forbidden else log_probs_RV, num_candidates
        )

    def log_probs(self) -> Tensor:
        """See `NextTokens.log_probs`."""
        return self._log_probs_RV


class Ensemble:
    """Several models that translate as one (Sutskever, Vinyals, Le 2014, section 3.6).

        log p(y_t | y_<t, x) = log 1/N sum_n p_n(y_t | y_<t, x)

    They may differ in everything but their vocabularies and whether their outputs copy source tokens. The attention is
    the mean over the models that have attention over source positions. The state is the tuple of theirs.
    """

    def __init__(self, models: Sequence[StepModel[Any]]) -> None:
        self._models = list(models)

    def start(self, source: SourceBatch, rows_per_sentence: int) -> tuple[Any, ...]:
        """See `StepModel.start`."""
        return tuple(model.start(source, rows_per_sentence) for model in self._models)

    def step(self, prev_ids_R: Tensor, state: tuple[Any, ...]) -> tuple[LogProbs, tuple[Any, ...]]:
        """See `StepModel.step`."""
        steps = [model.step(prev_ids_R, own) for model, own in zip(self._models, state, strict=True)]
        log_probs = torch.stack([tokens.log_probs() for tokens, _ in steps])
        weights = [tokens.weights_RS for tokens, _ in steps if tokens.weights_RS is not None]
        mean_RV = log_probs.logsumexp(dim=0) - math.log(len(steps))
        mean_RS = torch.stack(weights).mean(dim=0) if weights else None
        return LogProbs(mean_RV, mean_RS), tuple(own for _, own in steps)

    def reorder(self, state: tuple[Any, ...], index_R: Tensor) -> tuple[Any, ...]:
        """See `StepModel.reorder`."""
        return tuple(model.reorder(own, index_R) for model, own in zip(self._models, state, strict=True))


class Ranked(NamedTuple):
    """The next tokens of each row with the scores that rank them: the model's log-probabilities, unless rules or
    scorers change them."""

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
        """The model's log-probabilities of tokens with these scores, -inf for those that are excluded."""
        if self.log_probs_RV is None:
            return scores_RJ
        return self.log_probs_RV.gather(1, ids_RJ).masked_fill(scores_RJ == -torch.inf, -torch.inf)


class RankedSteps:
    """The steps of a model with the rules and scorers of a search. Its state is the model's and that of each scorer."""

    def __init__(self, model: StepModel[Any], source: SearchSource, options: SearchConfig) -> None:
        self._model, self._source = model, source
        self._forbidden = (PAD, BOS, UNK) if options.unk == "forbid" else (PAD, BOS)
        needs_rules = bool(any(source.prefixes) or options.no_repeat_ngram or source.scorers)
        rules: list[Scorer] = [Rules(self._forbidden, options.no_repeat_ngram)] if needs_rules else []
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
        return Ranked(LogProbs(scores_RV, tokens.weights_RS), (), log_probs_RV), tuple(states)

    def reorder(self, state: tuple[Any, ...], index_R: Tensor) -> tuple[Any, ...]:
        """See `StepModel.reorder`."""
        movers: list[StepModel[Any] | Scorer] = [self._model, *self._scorers]
        return tuple(mover.reorder(part, index_R) for mover, part in zip(movers, state, strict=True))


class Rules(Scorer):
    """Excludes tokens, and completes no n-gram of a given length twice (0: no such rule). The prefix takes precedence
    over both. The state is `prefixes_RP`, None without prefixes."""

    def __init__(self, forbidden: Sequence[int], no_repeat_ngram: int) -> None:
        self._forbidden, self._no_repeat_ngram = forbidden, no_repeat_ngram

    def start(self, source: SearchSource, rows_per_sentence: int) -> Tensor | None:
        """See `Scorer.start`."""
        width = max(map(len, source.prefixes), default=0)
        if not width:
            return None
        rows = [[*prefix, *[FREE] * (width - len(prefix))] for prefix in source.prefixes]
        return torch.tensor(rows, device=source.batch.ids_BS.device).repeat_interleave(rows_per_sentence, dim=0)

    def rescore(self, scores_RV: Tensor, tokens_RT: Tensor, state: Tensor | None) -> tuple[Tensor, Tensor | None]:
        """See `Scorer.rescore`."""
        allowed_RV = forbid_tokens_(scores_RV.clone(), self._forbidden)
        length, n = tokens_RT.shape[1], self._no_repeat_ngram
        if n and length >= n:  # forbid each token that would complete an n-gram which the row already has
            ngrams_RWn = tokens_RT.unfold(1, n, 1)
            is_again_RW = (ngrams_RWn[..., :-1] == tokens_RT[:, None, length - n + 1 :]).all(dim=2)
            ids_RW = ngrams_RWn[..., -1].where(is_again_RW, PAD)  # PAD is forbidden in any case
            allowed_RV.scatter_(1, ids_RW, -torch.inf)
        if state is None or length >= state.shape[1]:
            return allowed_RV, state
        next_R1 = state[:, length].unsqueeze(1)
        ids_R1 = next_R1.clamp(min=0).masked_fill(next_R1 >= scores_RV.shape[1], UNK)
        forced_RV = torch.full_like(allowed_RV, -torch.inf).scatter(1, ids_R1, scores_RV.gather(1, ids_R1))
        return torch.where(next_R1 == FREE, allowed_RV, forced_RV), state
