"""Rules of a search: tokens that a translation must not contain, a prefix that it begins with, n-grams that it must not
repeat.

Shapes: B sentences, R rows in search, P prefix tokens, V target vocabulary, J candidates of a row, T tokens so far, W
n-grams of a row.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from seq2seq_attn.model.top_tokens import forbid_tokens_, top_tokens
from seq2seq_attn.search.hypothesis import NextTokens
from seq2seq_attn.search.options import SearchOptions
from seq2seq_attn.text.vocab import BOS, PAD, UNK

FREE = -1
"""fills `prefixes_BP` after the end of a prefix"""


@dataclass(frozen=True)
class Rules:
    """The rules for the next token. The log-probabilities of forbidden tokens become -inf; the rest are not
    renormalized, so that a hypothesis keeps the model's log-probability."""

    forbidden: tuple[int, ...]
    prefixes_BP: Tensor | None
    """int64"""
    no_repeat_ngram: int
    """an n-gram of this length may occur only once; 0: no such rule"""

    @classmethod
    def of(cls, options: SearchOptions, prefixes: Sequence[Sequence[int]] | None, device: torch.device) -> Rules:
        """PAD and BOS are always forbidden. `prefixes` are the surface ids that each sentence's translation begins
        with; if the model copies no source tokens, those of source positions count as UNK."""
        prefixes_BP = None
        if prefixes is not None and any(prefixes):
            width = max(map(len, prefixes))
            rows = [[*prefix, *[FREE] * (width - len(prefix))] for prefix in prefixes]
            prefixes_BP = torch.tensor(rows, device=device)
        forbidden = (PAD, BOS, UNK) if options.unk == "forbid" else (PAD, BOS)
        return cls(forbidden, prefixes_BP, options.no_repeat_ngram)

    @property
    def needs_log_probs(self) -> bool:
        """Whether the rules need more than the most probable tokens."""
        return self.prefixes_BP is not None or self.no_repeat_ngram > 0

    def top(
        self, tokens: NextTokens, num_candidates: int, *, sentences_R: Tensor, tokens_RT: Tensor, every: int = 1
    ) -> tuple[Tensor, Tensor]:
        """`NextTokens.top` by these rules. `sentences_R` are the sentences of the rows, `tokens_RT` their tokens so far
        (without BOS), both with `every` applied."""
        if not self.needs_log_probs:
            return tokens.top(num_candidates, forbidden=self.forbidden, every=every)
        allowed_RV = self.allowed(tokens.log_probs()[::every], sentences_R=sentences_R, tokens_RT=tokens_RT)
        return top_tokens(allowed_RV, num_candidates)

    def allowed(self, log_probs_RV: Tensor, *, sentences_R: Tensor, tokens_RT: Tensor) -> Tensor:
        """The log-probabilities, -inf where a rule forbids the token. The prefix takes precedence over the others."""
        allowed_RV = forbid_tokens_(log_probs_RV.clone(), self.forbidden)
        if self.no_repeat_ngram:
            _forbid_repetition_(allowed_RV, tokens_RT, self.no_repeat_ngram)
        length = tokens_RT.shape[1]
        if self.prefixes_BP is None or length >= self.prefixes_BP.shape[1]:
            return allowed_RV
        next_R1 = self.prefixes_BP[sentences_R, length].unsqueeze(1)
        ids_R1 = next_R1.clamp(min=0).masked_fill(next_R1 >= log_probs_RV.shape[1], UNK)
        forced_RV = torch.full_like(allowed_RV, -torch.inf).scatter(1, ids_R1, log_probs_RV.gather(1, ids_R1))
        return torch.where(next_R1 == FREE, allowed_RV, forced_RV)


def _forbid_repetition_(log_probs_RV: Tensor, tokens_RT: Tensor, n: int) -> None:
    """Forbid every token that would complete an n-gram which the row already has."""
    if tokens_RT.shape[1] < n:
        return
    ngrams_RWn = tokens_RT.unfold(1, n, 1)
    is_again_RW = (ngrams_RWn[..., :-1] == tokens_RT[:, None, tokens_RT.shape[1] - n + 1 :]).all(dim=2)
    ids_RW = ngrams_RWn[..., -1].where(is_again_RW, PAD)  # PAD is forbidden in any case
    log_probs_RV.scatter_(1, ids_RW, -torch.inf)
