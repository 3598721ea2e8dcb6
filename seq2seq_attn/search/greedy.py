"""Greedy search: the most probable token at each step.

Shapes: B sentences, R rows = sentences still in the batch, T tokens so far.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from seq2seq_attn.config import SearchConfig
from seq2seq_attn.model.layers import select_rows
from seq2seq_attn.search.base import Hypothesis, SearchSource, StepModel
from seq2seq_attn.search.loop import Ranked, RankedSteps, Step, finish
from seq2seq_attn.text.vocab import BOS, EOS

Choose = Callable[[Ranked, Tensor, int], tuple[Tensor, Tensor]]
"""chooses the next token of each row: takes the ranked tokens, `sentences_R` and the number of
tokens so far, and returns `scores_R1` and `ids_R1`"""


def search(
    model: StepModel[Any], source: SearchSource, options: SearchConfig
) -> list[list[Hypothesis]]:
    """Return one hypothesis per sentence. The length penalty only changes the score."""

    def choose(ranked: Ranked, sentences_R: Tensor, length: int) -> tuple[Tensor, Tensor]:
        return ranked.top(1)

    return search_rows(model, source, options, choose, keeps_scores=True)


@torch.inference_mode()
def search_rows(
    model: StepModel[Any],
    source: SearchSource,
    options: SearchConfig,
    choose: Choose,
    *,
    keeps_scores: bool = False,
) -> list[list[Hypothesis]]:
    """Extend one hypothesis per sentence by the tokens that `choose` returns. Finished
    sentences leave the batch.

    Args:
        keeps_scores: whether `choose` returns scores of `ranked` unchanged. Then the search need
            not compute the log-probabilities of all tokens.
    """
    sentences_R, limits_R1, tokens_RT, totals_R1 = _start_rows(source)
    log_probs_R1 = totals_R1
    steps_model = RankedSteps(model, source, options)
    state = steps_model.start(1)
    steps: list[Step] = []
    while True:
        ranked, state = steps_model.step(tokens_RT, state)
        scores_R1, ids_R1 = choose(ranked, sentences_R, len(steps))
        log_probs_R1 = log_probs_R1 + ranked.log_probs(ids_R1, scores_R1, keeps_scores=keeps_scores)
        totals_R1 = totals_R1 + scores_R1
        tokens_RT = torch.cat([tokens_RT, ids_R1], dim=1)
        length = len(steps) + 1
        is_ended_R1 = ids_R1 == EOS
        is_cut_R1 = ~is_ended_R1 & (limits_R1 <= length)
        step = Step(
            sentences_R,
            parents_BK=torch.zeros_like(ids_R1),
            ids_BK=ids_R1,
            log_probs_BK=log_probs_R1,
            scores_BK=totals_R1 / length**options.length_penalty,
            is_ended_BK=is_ended_R1,
            is_cut_BK=is_cut_R1,
            weights_RS=ranked.tokens.weights_RS if source.keeps_weights else None,
        )
        steps.append(step)
        is_open_R = ~(is_ended_R1 | is_cut_R1).squeeze(1)
        index_R = is_open_R.nonzero().squeeze(1)
        if len(index_R) == 0:
            break
        if len(index_R) < len(sentences_R):
            state = steps_model.reorder(state, index_R)
            rows = (sentences_R, limits_R1, tokens_RT, totals_R1, log_probs_R1)
            sentences_R, limits_R1, tokens_RT, totals_R1, log_probs_R1 = select_rows(rows, index_R)
    return finish(steps, source.batch.lengths_B.tolist(), n_best=1)


def _start_rows(source: SearchSource) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Return the sentence, the maximum length, the first token and the score of each row."""
    device = source.batch.ids_BS.device
    sentences_R = torch.arange(len(source.max_lengths_B), device=device)
    limits_R1 = torch.tensor(list(source.max_lengths_B), device=device).unsqueeze(1)
    tokens_R1 = torch.full_like(limits_R1, BOS)
    totals_R1 = torch.zeros(limits_R1.shape, device=device)
    return sentences_R, limits_R1, tokens_R1, totals_R1
