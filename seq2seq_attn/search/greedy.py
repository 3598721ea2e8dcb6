"""Greedy search: the most probable token at each step.

Shapes: B sentences, R rows = sentences still in the batch, T tokens so far.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from seq2seq_attn.data.batch import SourceBatch
from seq2seq_attn.search.finish import Step, finish
from seq2seq_attn.search.hypothesis import Hypothesis, NextTokens, StateT, StepModel
from seq2seq_attn.search.options import AS_CONFIGURED, SearchOptions
from seq2seq_attn.search.rules import Rules
from seq2seq_attn.text.vocab import BOS, EOS

Choose = Callable[[NextTokens, Rules, Tensor, Tensor], tuple[Tensor, Tensor]]
"""the next token of each row, from `NextTokens`, rules, `sentences_R` and `tokens_RT` (without BOS): `log_probs_R` and
`ids_R`"""


def most_probable(tokens: NextTokens, rules: Rules, sentences_R: Tensor, tokens_RT: Tensor) -> tuple[Tensor, Tensor]:
    """See `Choose`."""
    log_probs_R1, ids_R1 = rules.top(tokens, 1, sentences_R=sentences_R, tokens_RT=tokens_RT)
    return log_probs_R1.squeeze(1), ids_R1.squeeze(1)


@torch.inference_mode()
def greedy_search(
    model: StepModel[StateT],
    source: SourceBatch,
    options: SearchOptions = AS_CONFIGURED,
    *,
    max_lengths_B: Sequence[int],
    prefixes: Sequence[Sequence[int]] | None = None,
    choose: Choose = most_probable,
) -> list[Hypothesis]:
    """One hypothesis per sentence, in the batch's order.

    `max_lengths_B` is the maximum number of tokens of a sentence's hypothesis, EOS included (at least 1), `prefixes`
    the ids that each sentence's hypothesis begins with. The length penalty only changes its score. Finished sentences
    leave the batch.
    """
    device = source.ids_BS.device
    rules = Rules.of(options, prefixes, device)
    sentences_R = torch.arange(len(max_lengths_B), device=device)
    limits_R = torch.tensor(list(max_lengths_B), device=device)
    tokens_RT = torch.full((len(max_lengths_B), 1), BOS, device=device)
    log_probs_R = torch.zeros(len(max_lengths_B), device=device)
    state = model.start(source, 1)
    steps: list[Step] = []
    while True:
        tokens, state = model.step(tokens_RT[:, -1], state)
        next_R, ids_R = choose(tokens, rules, sentences_R, tokens_RT[:, 1:])
        log_probs_R, tokens_RT = log_probs_R + next_R, torch.cat([tokens_RT, ids_R.unsqueeze(1)], dim=1)
        is_ended_R = ids_R == EOS
        is_cut_R = ~is_ended_R & (limits_R <= len(steps) + 1)
        steps.append(
            Step(
                sentences_R,
                parents_BK=torch.zeros_like(ids_R).unsqueeze(1),
                ids_BK=ids_R.unsqueeze(1),
                log_probs_BK=log_probs_R.unsqueeze(1),
                scores_BK=(log_probs_R / (len(steps) + 1) ** options.length_penalty).unsqueeze(1),
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
            tokens_RT, log_probs_R = tokens_RT[index_R], log_probs_R[index_R]
    return [hypotheses[0] for hypotheses in finish(steps, source.lengths_B.tolist(), n_best=1)]
