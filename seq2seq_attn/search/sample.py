"""Sampling: draw each next token from the model's distribution.

    q(w) proportional to p(w)^(1 / temperature), over the `top_k` most probable tokens

Of these tokens, the fewest are kept whose q adds up to at least `top_p`, and q is renormalized over them (Holtzman et
al. 2020, section 3).

The random numbers of a sample depend on its source ids (for a source of vectors, on how many there are), its index
among the samples of that source, and the seed. They do not depend on the other sentences of the batch. A hypothesis
keeps the model's own log-probability.

Shapes: B sentences, R rows = sentences still in the batch, V target vocabulary, T target positions.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from seq2seq_attn.data.batch import SourceBatch
from seq2seq_attn.search.greedy import greedy_search
from seq2seq_attn.search.hypothesis import Hypothesis, NextTokens, StateT, StepModel
from seq2seq_attn.search.options import SearchOptions
from seq2seq_attn.search.rules import Rules


def sample_search(
    model: StepModel[StateT],
    source: SourceBatch,
    options: SearchOptions,
    *,
    numbers_B: Sequence[int],
    max_lengths_B: Sequence[int],
    prefixes: Sequence[Sequence[int]] | None = None,
) -> list[Hypothesis]:
    """One sample per sentence, in the batch's order. `numbers_B`: the index of each sample among those of its
    source; otherwise as `greedy_search`."""
    draws_BT = _draws(source, options.seed, numbers_B, max(max_lengths_B)).to(source.ids_BS.device)

    def choose(tokens: NextTokens, rules: Rules, sentences_R: Tensor, tokens_RT: Tensor) -> tuple[Tensor, Tensor]:
        log_probs_RV = rules.allowed(tokens.log_probs(), sentences_R=sentences_R, tokens_RT=tokens_RT)
        ids_R1 = _drawn(log_probs_RV, options, draws_BT[sentences_R, tokens_RT.shape[1]])
        return log_probs_RV.gather(1, ids_R1).squeeze(1), ids_R1.squeeze(1)

    return greedy_search(model, source, options, max_lengths_B=max_lengths_B, prefixes=prefixes, choose=choose)


def _draws(source: SourceBatch, seed: int, numbers_B: Sequence[int], num_steps: int) -> Tensor:
    """float64 [B, T], uniform in [0, 1)."""
    rows = zip(source.ids_BS.tolist(), source.lengths_B.tolist(), numbers_B, strict=True)
    return torch.from_numpy(
        np.stack(
            [np.random.default_rng([seed, number, *ids[:length]]).random(num_steps) for ids, length, number in rows]
        )
    )


def _drawn(log_probs_RV: Tensor, options: SearchOptions, draws_R: Tensor) -> Tensor:
    """`ids_R1`: the token at which the cumulative probability passes the draw. With `top_k` or `top_p`, tokens are
    taken best first; otherwise by id, which needs no sorting."""
    if not options.top_k and options.top_p == 1.0:
        cumulative_RV = (log_probs_RV.double() / options.temperature).softmax(dim=1).cumsum(dim=1)
        limit_R1 = draws_R.unsqueeze(1) * cumulative_RV[:, -1:]  # a draw is at most 1 - 2^-53, so this stays below
        ids_R1 = torch.searchsorted(cumulative_RV, limit_R1, right=True)
        return ids_R1.clamp(max=log_probs_RV.shape[1] - 1)  # beyond it if the probabilities are NaN
    ordered_RV, ids_RV = (log_probs_RV.double() / options.temperature).sort(dim=1, descending=True, stable=True)
    if options.top_k:
        ordered_RV, ids_RV = ordered_RV[:, : options.top_k], ids_RV[:, : options.top_k]
    cumulative_RV = ordered_RV.softmax(dim=1).cumsum(dim=1)
    limit_R1 = draws_R.unsqueeze(1)
    if options.top_p < 1.0:
        # the kept tokens are those before which less than top_p has been reached
        reached_RV = torch.cat([torch.zeros_like(limit_R1), cumulative_RV[:, :-1]], dim=1)
        is_kept_RV = reached_RV < options.top_p
        limit_R1 = limit_R1 * cumulative_RV.masked_fill(~is_kept_RV, 0.0).amax(dim=1, keepdim=True)
    is_possible_RV = ordered_RV > -torch.inf
    position_R1 = (cumulative_RV <= limit_R1).sum(dim=1, keepdim=True)
    return ids_RV.gather(1, position_R1.minimum(is_possible_RV.sum(dim=1, keepdim=True) - 1).clamp(min=0))
