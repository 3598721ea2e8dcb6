"""Sampling: draw each next token from the model's distribution.

    q(w) is proportional to p(w)^(1 / temperature), over the `top_k` most probable tokens

Of these tokens, the most probable are kept: the fewest whose q adds up to at least `top_p`. Then q
is renormalized over the kept tokens (Holtzman et al. 2020, section 3).

The random numbers of a sample depend on the seed, the ids of its source, and its index among the
samples of the source. For a source of vectors, they depend on the number of vectors in place of
ids. They do not depend on the other sentences of the batch. The log-probability of a hypothesis is
the model's, without temperature, `top_k` and `top_p`.

Shapes: B samples (the samples of a sentence are adjacent), R rows = samples still in the batch, V
target vocabulary, T target positions.
"""

from itertools import chain
from typing import Any

import numpy as np
import torch
from torch import Tensor

from seq2seq_attn.config import SearchConfig
from seq2seq_attn.data.batch import SourceBatch
from seq2seq_attn.search.base import Hypothesis, SearchSource, StepModel
from seq2seq_attn.search.greedy import search_rows
from seq2seq_attn.search.loop import Ranked


class Options(SearchConfig):
    """The options of sampling."""

    @property
    def rows_per_sentence(self) -> int:
        """The number of rows in search per sentence: one for each sample."""
        return self.n_best


def search(model: StepModel[Any], source: SearchSource, options: Options) -> list[list[Hypothesis]]:
    """Return the samples of each sentence, in the order of their index. Samples may be equal."""
    num_samples = options.rows_per_sentence
    fields: list[Any] = []
    for field in source.batch:
        fields.append(None if field is None else field.repeat_interleave(num_samples, dim=0))
    batch = SourceBatch(*fields)
    prefixes = []
    for prefix in source.prefixes:
        prefixes += [prefix] * num_samples
    source = source._replace(
        batch=batch,
        max_lengths_B=np.repeat(source.max_lengths_B, num_samples).tolist(),
        prefixes=prefixes,
    )
    draws_BT = _draws(batch, options.seed, num_samples, max(source.max_lengths_B))
    draws_BT = draws_BT.to(batch.ids_BS.device)

    def draw(ranked: Ranked, sentences_R: Tensor, length: int) -> tuple[Tensor, Tensor]:
        """Draw the next token of each row (`greedy.Choose`)."""
        scores_RV = ranked.scores()
        ids_R1 = _draw_ids(scores_RV, options, draws_BT[sentences_R, length])
        return scores_RV.gather(1, ids_R1), ids_R1

    rows = search_rows(model, source, options, draw, keeps_scores=True)
    drawn = list(chain.from_iterable(rows))  # one hypothesis per row
    return [drawn[start : start + num_samples] for start in range(0, len(drawn), num_samples)]


def _draws(batch: SourceBatch, seed: int, num_samples: int, num_steps: int) -> Tensor:
    """Return the random numbers of each sample, float64 [B, T], uniform in [0, 1)."""
    draws = []
    lengths = batch.lengths_B.tolist()
    for row, ids in enumerate(batch.ids_BS.tolist()):
        generator = np.random.default_rng([seed, row % num_samples, *ids[: lengths[row]]])
        draws.append(generator.random(num_steps))
    return torch.from_numpy(np.stack(draws))


def _draw_ids(log_probs_RV: Tensor, options: SearchConfig, draws_R: Tensor) -> Tensor:
    """Return `ids_R1`, the tokens at which the cumulative probability passes the random number.

    With `top_k` or `top_p`, probabilities are accumulated from the most probable token on.
    Otherwise they are accumulated in the order of ids, which needs no sorting.
    """
    tempered_RV = log_probs_RV.double() / options.temperature
    if not options.top_k and options.top_p == 1.0:
        cumulative_RV = tempered_RV.softmax(dim=1).cumsum(dim=1)
        # A random number is at most 1 - 2^-53, so the limit stays below the sum.
        limit_R1 = draws_R.unsqueeze(1) * cumulative_RV[:, -1:]
        ids_R1 = torch.searchsorted(cumulative_RV, limit_R1, right=True)
        # Without the clamp, probabilities of NaN would give an id beyond the vocabulary.
        return ids_R1.clamp(max=log_probs_RV.shape[1] - 1)
    ordered_RV, ids_RV = tempered_RV.sort(dim=1, descending=True, stable=True)
    if options.top_k:
        ordered_RV = ordered_RV[:, : options.top_k]
        ids_RV = ids_RV[:, : options.top_k]
    cumulative_RV = ordered_RV.softmax(dim=1).cumsum(dim=1)
    limit_R1 = draws_R.unsqueeze(1)
    if options.top_p < 1.0:
        # A token is kept if the more probable tokens add up to less than top_p.
        before_RV = torch.cat([torch.zeros_like(limit_R1), cumulative_RV[:, :-1]], dim=1)
        is_kept_RV = before_RV < options.top_p
        limit_R1 = limit_R1 * cumulative_RV.masked_fill(~is_kept_RV, 0.0).amax(dim=1, keepdim=True)
    last_R1 = (ordered_RV > -torch.inf).sum(dim=1, keepdim=True) - 1
    position_R1 = (cumulative_RV <= limit_R1).sum(dim=1, keepdim=True)
    return ids_RV.gather(1, position_R1.minimum(last_R1).clamp(min=0))
