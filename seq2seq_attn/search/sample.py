"""Sampling: draw each next token from the model's distribution.

    q(w) proportional to p(w)^(1 / temperature), over the `top_k` most probable tokens

Of these tokens, the fewest are kept whose q adds up to at least `top_p`, and q is renormalized over
them (Holtzman et al. 2020, section 3).

The random numbers of a sample depend on its source ids (for a source of vectors, on how many there
are), its index among the samples of that source, and the seed. They do not depend on the other
sentences of the batch. A hypothesis keeps the model's own log-probability.

Shapes: B sentences, R rows = sentences still in the batch, V target vocabulary, T target positions.
"""

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
    """The options of samples."""

    @property
    def rows_per_sentence(self) -> int:
        """A row per sample."""
        return self.n_best


def search(model: StepModel[Any], source: SearchSource, options: Options) -> list[list[Hypothesis]]:
    """The samples of each sentence, in the order in which they are drawn; some may be equal."""
    number = options.rows_per_sentence
    fields: list[Any] = []
    for field in source.batch:
        fields.append(None if field is None else field.repeat_interleave(number, dim=0))
    batch = SourceBatch(*fields)
    source = source._replace(
        batch=batch,
        max_lengths_B=np.repeat(source.max_lengths_B, number).tolist(),
        prefixes=[prefix for prefix in source.prefixes for _ in range(number)],
    )
    draws_BT = _draws(batch, options.seed, number, max(source.max_lengths_B))
    draws_BT = draws_BT.to(batch.ids_BS.device)

    def draw(ranked: Ranked, sentences_R: Tensor, length: int) -> tuple[Tensor, Tensor]:
        scores_RV = ranked.scores()
        ids_R1 = _draw_ids(scores_RV, options, draws_BT[sentences_R, length])
        return scores_RV.gather(1, ids_R1), ids_R1

    samples: list[list[Hypothesis]] = []
    for index, best in enumerate(search_rows(model, source, options, draw)):
        if index % number == 0:
            samples.append([])
        samples[-1] += best
    return samples


def _draws(batch: SourceBatch, seed: int, num_samples: int, num_steps: int) -> Tensor:
    """float64 [B, T], uniform in [0, 1)."""
    draws = []
    lengths = batch.lengths_B.tolist()
    for row, ids in enumerate(batch.ids_BS.tolist()):
        generator = np.random.default_rng([seed, row % num_samples, *ids[: lengths[row]]])
        draws.append(generator.random(num_steps))
    return torch.from_numpy(np.stack(draws))


def _draw_ids(log_probs_RV: Tensor, options: SearchConfig, draws_R: Tensor) -> Tensor:
    """`ids_R1`: the token at which the cumulative probability passes the draw. With `top_k` or
    `top_p`, tokens are taken best first; otherwise by id, which needs no sorting."""
    tempered_RV = log_probs_RV.double() / options.temperature
    if not options.top_k and options.top_p == 1.0:
        cumulative_RV = tempered_RV.softmax(dim=1).cumsum(dim=1)
        # a draw is at most 1 - 2^-53, so the limit stays below the sum
        limit_R1 = draws_R.unsqueeze(1) * cumulative_RV[:, -1:]
        ids_R1 = torch.searchsorted(cumulative_RV, limit_R1, right=True)
        return ids_R1.clamp(max=log_probs_RV.shape[1] - 1)  # beyond it if the probabilities are NaN
    ordered_RV, ids_RV = tempered_RV.sort(dim=1, descending=True, stable=True)
    if options.top_k:
        ordered_RV = ordered_RV[:, : options.top_k]
        ids_RV = ids_RV[:, : options.top_k]
    cumulative_RV = ordered_RV.softmax(dim=1).cumsum(dim=1)
    limit_R1 = draws_R.unsqueeze(1)
    if options.top_p < 1.0:
        # the kept tokens are those before which less than top_p has been reached
        reached_RV = torch.cat([torch.zeros_like(limit_R1), cumulative_RV[:, :-1]], dim=1)
        is_kept_RV = reached_RV < options.top_p
        limit_R1 = limit_R1 * cumulative_RV.masked_fill(~is_kept_RV, 0.0).amax(dim=1, keepdim=True)
    last_R1 = (ordered_RV > -torch.inf).sum(dim=1, keepdim=True) - 1
    position_R1 = (cumulative_RV <= limit_R1).sum(dim=1, keepdim=True)
    return ids_RV.gather(1, position_R1.minimum(last_R1).clamp(min=0))
