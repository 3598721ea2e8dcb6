"""The steps of a search: the model's next tokens as rules and scorers rank them.

Rules exclude tokens that a translation must not contain, make it begin with its prefix, and stop n-grams from
repeating. The log-probabilities of the rest are not renormalized.

Shapes: B sentences, R rows in search, P prefix tokens, V target vocabulary, J candidates of a row, T tokens so far, W
n-grams of a row.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from seq2seq_attn.config import SearchConfig
from seq2seq_attn.model.top_tokens import forbid_tokens_, top_tokens
from seq2seq_attn.search.base import NextTokens, Scorer, SearchSource, StepModel
from seq2seq_attn.text.vocab import BOS, PAD, UNK

FREE = -1
"""fills `prefixes_RP` after the end of a prefix"""


class Ranked:
    """The next tokens of each row with the scores that rank them: the model's log-probabilities, unless rules or
    scorers change them."""

    def __init__(
        self, tokens: NextTokens, forbidden: Sequence[int], changed: tuple[Tensor, Tensor] | None = None
    ) -> None:
        """`changed`: `log_probs_RV` of the model and `scores_RV`; None: they are the same but for `forbidden`."""
        self._tokens, self._forbidden, self._changed = tokens, forbidden, changed
        self.weights_RS = tokens.weights_RS

    def top(self, num_candidates: int, *, every: int = 1) -> tuple[Tensor, Tensor]:
        """`scores_RJ` and `ids_RJ` of the best tokens, as `NextTokens.top`."""
        if self._changed is None:
            return self._tokens.top(num_candidates, forbidden=self._forbidden, every=every)
        return top_tokens(self._changed[1][::every], num_candidates)

    def scores(self) -> Tensor:
        """`scores_RV` of all tokens, -inf for those that are excluded."""
        if self._changed is None:
            return forbid_tokens_(self._tokens.log_probs().clone(), self._forbidden)
        return self._changed[1]

    def log_probs(self, ids_RJ: Tensor, scores_RJ: Tensor, rows_R: Tensor | None = None) -> Tensor | None:
        """The model's log-probabilities of tokens with these scores, -inf for those that are excluded; None: they are
        the scores."""
        if self._changed is None:
            return None
        log_probs_RV = self._changed[0] if rows_R is None else self._changed[0][rows_R]
        return log_probs_RV.gather(1, ids_RJ).masked_fill(scores_RJ == -torch.inf, -torch.inf)


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
            return Ranked(tokens, self._forbidden), (model_state,)
        log_probs_RV = scores_RV = tokens.log_probs()
        states = [model_state]
        for scorer, part in zip(self._scorers, state[1:], strict=True):
            scores_RV, part = scorer.rescore(scores_RV, tokens_RT[:, 1:], part)
            states.append(part)
        return Ranked(tokens, self._forbidden, (log_probs_RV, scores_RV)), tuple(states)

    def reorder(self, state: tuple[Any, ...], index_R: Tensor) -> tuple[Any, ...]:
        """See `StepModel.reorder`."""
        movers: list[StepModel[Any] | Scorer] = [self._model, *self._scorers]
        return tuple(mover.reorder(part, index_R) for mover, part in zip(movers, state, strict=True))


class Prefixes(NamedTuple):
    """The prefix of each row; None: there is none."""

    ids_RP: Tensor | None
    """int64, `FREE` after the end"""


class Rules(Scorer):
    """Excludes tokens, and completes no n-gram of a given length twice (0: no such rule). The prefix takes precedence
    over both."""

    def __init__(self, forbidden: Sequence[int], no_repeat_ngram: int) -> None:
        self._forbidden, self._no_repeat_ngram = forbidden, no_repeat_ngram

    def start(self, source: SearchSource, rows_per_sentence: int) -> Prefixes:
        """See `Scorer.start`."""
        width = max(map(len, source.prefixes), default=0)
        if not width:
            return Prefixes(None)
        rows = [[*prefix, *[FREE] * (width - len(prefix))] for prefix in source.prefixes]
        ids_BP = torch.tensor(rows, device=source.batch.ids_BS.device)
        return Prefixes(ids_BP.repeat_interleave(rows_per_sentence, dim=0))

    def rescore(self, scores_RV: Tensor, tokens_RT: Tensor, state: Prefixes) -> tuple[Tensor, Prefixes]:
        """See `Scorer.rescore`."""
        allowed_RV = forbid_tokens_(scores_RV.clone(), self._forbidden)
        if self._no_repeat_ngram:
            _forbid_repetition_(allowed_RV, tokens_RT, self._no_repeat_ngram)
        length = tokens_RT.shape[1]
        if state.ids_RP is None or length >= state.ids_RP.shape[1]:
            return allowed_RV, state
        next_R1 = state.ids_RP[:, length].unsqueeze(1)
        ids_R1 = next_R1.clamp(min=0).masked_fill(next_R1 >= scores_RV.shape[1], UNK)
        forced_RV = torch.full_like(allowed_RV, -torch.inf).scatter(1, ids_R1, scores_RV.gather(1, ids_R1))
        return torch.where(next_R1 == FREE, allowed_RV, forced_RV), state


def _forbid_repetition_(log_probs_RV: Tensor, tokens_RT: Tensor, n: int) -> None:
    """Forbid every token that would complete an n-gram which the row already has."""
    if tokens_RT.shape[1] < n:
        return
    ngrams_RWn = tokens_RT.unfold(1, n, 1)
    is_again_RW = (ngrams_RWn[..., :-1] == tokens_RT[:, None, tokens_RT.shape[1] - n + 1 :]).all(dim=2)
    ids_RW = ngrams_RWn[..., -1].where(is_again_RW, PAD)  # PAD is forbidden in any case
    log_probs_RV.scatter_(1, ids_RW, -torch.inf)
