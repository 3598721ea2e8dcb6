"""Greedy search: the most probable token at each step.

Shapes: B sentences, R rows = sentences still in the batch.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

import torch

from seq2seq_attn.data.batch import SourceBatch
from seq2seq_attn.search.finish import Step, finish
from seq2seq_attn.search.hypothesis import Hypothesis, StepModel, forbidden_ids
from seq2seq_attn.search.options import SearchOptions
from seq2seq_attn.text.vocab import BOS, EOS

StateT = TypeVar("StateT")
GREEDY = SearchOptions(beam_size=1)


@torch.inference_mode()
def greedy_search(
    model: StepModel[StateT],
    source: SourceBatch,
    options: SearchOptions = GREEDY,
    *,
    max_lengths_B: Sequence[int],
) -> list[Hypothesis]:
    """One hypothesis per sentence, in the batch's order.

    `max_lengths_B` is the maximum number of tokens of a sentence's hypothesis, EOS included (at least 1). The length
    penalty only changes its score. Finished sentences leave the batch.
    """
    device = source.ids_BS.device
    sentences_R = torch.arange(len(max_lengths_B), device=device)
    limits_R = torch.tensor(list(max_lengths_B), device=device)
    prev_ids_R = torch.full_like(sentences_R, BOS)
    log_probs_R = torch.zeros(len(max_lengths_B), device=device)
    state = model.start(source, 1)
    steps: list[Step] = []
    while True:
        tokens, state = model.step(prev_ids_R, state)
        best_R1, ids_R1 = tokens.top(1, forbidden=forbidden_ids(options.unk == "forbid"))
        prev_ids_R, log_probs_R = ids_R1.squeeze(1), log_probs_R + best_R1.squeeze(1)
        is_ended_R = prev_ids_R == EOS
        is_cut_R = ~is_ended_R & (limits_R <= len(steps) + 1)
        steps.append(
            Step(
                sentences_R,
                parents_BK=torch.zeros_like(prev_ids_R).unsqueeze(1),
                ids_BK=prev_ids_R.unsqueeze(1),
                log_probs_BK=log_probs_R.unsqueeze(1),
                is_ended_BK=is_ended_R.unsqueeze(1),
                is_cut_BK=is_cut_R.unsqueeze(1),
                weights_RS=tokens.weights_RS if options.keeps_weights else None,
            )
        )
        index_R = (~(is_ended_R | is_cut_R)).nonzero().squeeze(1)
        if len(index_R) == 0:
            break
        if len(index_R) < len(sentences_R):
            state = model.reorder(state, index_R)
            sentences_R, limits_R = sentences_R[index_R], limits_R[index_R]
            prev_ids_R, log_probs_R = prev_ids_R[index_R], log_probs_R[index_R]
    found = finish(steps, source.lengths_B.tolist(), n_best=1, length_penalty=options.length_penalty)
    return [hypotheses[0] for hypotheses in found]
