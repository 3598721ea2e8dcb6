"""Required words: a beam search whose translations contain given words (Post and Vilar 2018,
dynamic beam allocation).

A phrase is the target tokens of one required word, or of several in a row. A hypothesis meets
all tokens of a phrase that it contains. Of any other phrase, a hypothesis meets the first tokens if
the hypothesis ends with these tokens.

A hypothesis that meets m of the n required tokens belongs to bank m. With k free slots, each of the
n + 1 banks keeps its best k / (n + 1) continuations, rounded down. The best other continuations
fill the slots that are left. So hypotheses that have yet to meet a word compete with each other,
not with hypotheses of other banks. A hypothesis ends only after it has met all phrases. In the last
step before the length limit, such hypotheses must end.

A hypothesis is continued by its most probable tokens, and by the next token of each phrase that it
does not contain yet.

Shapes: B beams, K slots, R = B * K rows, J candidates of a row, C candidates of a beam, N banks, P
phrases, X any number of rows, T tokens.
"""

from collections.abc import Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from seq2seq_attn.errors import UsageError
from seq2seq_attn.model.layers import top_tokens
from seq2seq_attn.search import beam
from seq2seq_attn.search.base import Hypothesis, SearchSource, StepModel
from seq2seq_attn.search.beam import Beam, Candidates, add, rank_candidates, search_beams
from seq2seq_attn.search.loop import Ranked
from seq2seq_attn.text.vocab import EOS, UNK


class Options(beam.Options):
    """The options of a beam search with required words."""

    required: tuple[str, ...] = ()
    """Words or phrases that every translation contains. Subwords may continue the last word. A line
    that is split into segments contains the words in the translation of each segment."""


def search(model: StepModel[Any], source: SearchSource, options: Options) -> list[list[Hypothesis]]:
    """Return up to `n_best` hypotheses per sentence.

    A hypothesis that the length limit cuts may lack required words.

    Raises:
        UsageError: a required word is not in the vocabulary, or the beam has fewer slots than
            banks.
    """
    phrases: list[list[int]] = []
    for text in options.required:
        ids = source.to_ids(text)
        if not ids or UNK in ids:
            raise UsageError(f"required={text!r}: not in the run's target vocabulary")
        if ids not in phrases:
            phrases.append(ids)
    num_banks = 1 + sum(map(len, phrases))
    if options.beam_size < num_banks:
        raise UsageError(
            f"beam_size={options.beam_size}: too small for {num_banks - 1} required tokens; set at "
            f"least {num_banks}"
        )
    continuing = torch.tensor(list(source.continuing), device=source.batch.ids_BS.device)
    choose = partial(choose_by_bank, phrases=phrases, num_banks=num_banks, continuing=continuing)
    return search_beams(
        model, source, options, choose, num_slots=options.beam_size, keeps_scores=True
    )


def choose_by_bank(
    beam: Beam,
    ranked: Ranked,
    *,
    phrases: Sequence[Sequence[int]],
    num_banks: int,
    continuing: Tensor,
) -> Candidates:
    """Choose the best continuations of each bank, then the best other continuations."""
    num_beams, num_slots = beam.totals_BK.shape
    tokens_RT = beam.tokens_BKT.flatten(0, 1)[:, 1:]
    scores_RV = ranked.scores()
    met_RP = count_met(tokens_RT, phrases, continuing)
    # A hypothesis that lacks a token of a phrase must not end.
    lacks_any_R1 = (met_RP.sum(dim=1) < num_banks - 1).unsqueeze(1)
    is_end_V = torch.arange(scores_RV.shape[1], device=scores_RV.device) == EOS
    scores_RV = scores_RV.masked_fill(lacks_any_R1 & is_end_V, -torch.inf)
    if phrases:
        # In the last step, only EOS may follow if a hypothesis of the beam has met all phrases.
        is_last_B = beam.limits_B <= beam.tokens_BKT.shape[2]
        is_complete_BK = ~lacks_any_R1.view(num_beams, -1) & (beam.totals_BK > -torch.inf)
        must_end_B = is_last_B & is_complete_BK.any(dim=1)
        must_end_R1 = must_end_B.repeat_interleave(num_slots).unsqueeze(1)
        scores_RV = scores_RV.masked_fill(must_end_R1 & ~is_end_V, -torch.inf)
    scores_RJ, ids_RJ = _candidates(scores_RV, met_RP, phrases, num_slots)
    tokens_XT = tokens_RT.repeat_interleave(ids_RJ.shape[1], dim=0)
    longer_XT = torch.cat([tokens_XT, ids_RJ.view(-1, 1)], dim=1)
    banks_BC = count_met(longer_XT, phrases, continuing).sum(dim=1).view(num_beams, -1)

    # The candidates within the shares of their banks come first, each part by total.
    order_BC = rank_candidates(beam, scores_RJ)
    in_bank_BCN = functional.one_hot(banks_BC.gather(1, order_BC), num_banks)
    # The position of each candidate in the ranking of its bank.
    position_BC = ((in_bank_BCN.cumsum(dim=1) - 1) * in_bank_BCN).sum(dim=2)
    share_B1 = ((num_slots - beam.num_finished_B) // num_banks).unsqueeze(1)
    totals_BC = add(beam.totals_BK, scores_RJ).gather(1, order_BC)
    is_beyond_share_BC = (position_BC >= share_B1) | (totals_BC == -torch.inf)
    by_share_BC = is_beyond_share_BC.int().argsort(dim=1, stable=True)
    order_BK = order_BC.gather(1, by_share_BC)[:, :num_slots]
    return Candidates(ids_RJ, scores_RJ, order_BK)


def count_met(tokens_XT: Tensor, phrases: Sequence[Sequence[int]], continuing: Tensor) -> Tensor:
    """Return `met_XP`, the number of tokens of each phrase that each row of tokens meets.

    A phrase that a token of `continuing` follows does not count, because the token makes its last
    word longer.
    """
    num_rows, length = tokens_XT.shape
    met_XP = torch.zeros(num_rows, len(phrases), dtype=torch.int64, device=tokens_XT.device)
    is_continuing_XT = torch.isin(tokens_XT, continuing)
    for column, phrase in enumerate(phrases):
        wanted = torch.tensor(phrase, device=tokens_XT.device)
        for size in range(1, min(len(phrase), length) + 1):
            ends_so_X = (tokens_XT[:, length - size :] == wanted[:size]).all(dim=1)
            met_XP[ends_so_X, column] = size
        if length >= len(phrase):
            is_here_XT = (tokens_XT.unfold(1, len(phrase), 1) == wanted).all(dim=2)
            is_here_XT[:, :-1] &= ~is_continuing_XT[:, len(phrase) :]
            met_XP[is_here_XT.any(dim=1), column] = len(phrase)
    return met_XP


def _candidates(
    scores_RV: Tensor, met_RP: Tensor, phrases: Sequence[Sequence[int]], num_slots: int
) -> tuple[Tensor, Tensor]:
    """Return `scores_RJ` and `ids_RJ` of the tokens that may continue each row.

    These tokens are the best tokens of the row and the next token of each phrase. The score of the
    next token of a phrase is -inf if the token is among the candidates already, or if the phrase is
    met.
    """
    scores_RJ, ids_RJ = top_tokens(scores_RV, num_slots)
    for column, phrase in enumerate(phrases):
        # EOS stands for the next token of a phrase that is met.
        tokens = torch.tensor([*phrase, EOS], device=ids_RJ.device)
        next_R1 = tokens[met_RP[:, column]].unsqueeze(1)
        is_known_R1 = (ids_RJ == next_R1).any(dim=1, keepdim=True) | (next_R1 == EOS)
        scores_R1 = scores_RV.gather(1, next_R1).masked_fill(is_known_R1, -torch.inf)
        scores_RJ = torch.cat([scores_RJ, scores_R1], dim=1)
        ids_RJ = torch.cat([ids_RJ, next_R1], dim=1)
    return scores_RJ, ids_RJ
