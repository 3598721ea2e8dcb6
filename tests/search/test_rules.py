"""Prefixes, n-grams that occur once, and what a translation never holds."""

from __future__ import annotations

import pytest
import torch

from seq2seq_attn.config import SearchConfig
from seq2seq_attn.data.batch import collate_source
from seq2seq_attn.search.base import SearchSource
from seq2seq_attn.search.steps import Rules
from seq2seq_attn.text.vocab import BOS, EOS, PAD, UNK
from tests.search.fake_model import FakeModel, log_prob_of, sources
from tests.search.searching import beam_search, greedy_search

A, B = UNK + 1, UNK + 2


def allowed(options: SearchConfig, prefixes: list[list[int]] | None, tokens: list[list[int]]) -> list[set[int]]:
    """Of the tokens PAD to B, those that may follow each row's tokens."""
    rules = Rules((PAD, BOS, UNK) if options.unk == "forbid" else (PAD, BOS), options.no_repeat_ngram)
    tokens_RT = torch.tensor(tokens, dtype=torch.int64).view(len(tokens), -1)
    state = rules.start(SearchSource(collate_source([[5]] * len(tokens)), [9] * len(tokens), prefixes or ()), 1)
    found, _ = rules.rescore(torch.zeros(len(tokens), B + 1), tokens_RT, state)
    return [set((row == 0.0).nonzero().flatten().tolist()) for row in found]


def test_specials_are_never_chosen() -> None:
    assert allowed(SearchConfig(), None, [[A]]) == [{EOS, UNK, A, B}]
    assert allowed(SearchConfig(unk="forbid"), None, [[A]]) == [{EOS, A, B}]
    assert not {PAD, BOS} & allowed(SearchConfig(), None, [[]])[0]


def test_an_ngram_is_not_completed_twice() -> None:
    twice = SearchConfig(no_repeat_ngram=2)
    assert allowed(twice, None, [[A, B, A], [A, A, B], [A, B, B]]) == [{EOS, UNK, A}, {EOS, UNK, A, B}, {EOS, UNK, A}]
    assert allowed(SearchConfig(no_repeat_ngram=1), None, [[A, UNK]]) == [{EOS, B}]
    assert allowed(SearchConfig(no_repeat_ngram=3), None, [[A, B]]) == [{EOS, UNK, A, B}]


def test_a_prefix_leaves_no_impossible_hypotheses() -> None:
    """At the forced step, one slot of the beam has a continuation; the others must stay free."""
    model = FakeModel(num_free=6, seed=3, eos_bonus=1.0)
    _, batch = sources(6, 3)
    options = SearchConfig(beam_size=4, n_best=4)
    for best in beam_search(model, batch, options, max_lengths_B=[9] * 6, prefixes=[[A]] * 6):
        assert len(best) == 4
        assert all(hypothesis.ids[:1] == [A] and hypothesis.score > -torch.inf for hypothesis in best)


def test_a_prefix_goes_before_the_other_rules() -> None:
    options = SearchConfig(no_repeat_ngram=1, unk="forbid")
    assert allowed(options, [[A, A], [A, UNK], [A]], [[A], [A], [A]]) == [{A}, {UNK}, {EOS, B}]


@pytest.mark.parametrize("beam_size", [1, 3])
def test_translations_begin_with_their_prefixes_and_keep_the_model_s_log_prob(beam_size: int) -> None:
    model = FakeModel(num_free=6, seed=3, eos_bonus=1.0)
    ids, batch = sources(6, 3)
    prefixes = [[A], [B, A, A], [], [UNK], [A, A], [B]]
    options = SearchConfig(beam_size=beam_size)
    if beam_size == 1:
        found = greedy_search(model, batch, options, max_lengths_B=[9] * 6, prefixes=prefixes)
    else:
        found = [best[0] for best in beam_search(model, batch, options, max_lengths_B=[9] * 6, prefixes=prefixes)]
    for source, prefix, hypothesis in zip(ids, prefixes, found, strict=True):
        assert hypothesis.ids[: len(prefix)] == prefix
        expected = log_prob_of(model, source, hypothesis.ids, is_finished=hypothesis.is_finished)
        assert hypothesis.log_prob == pytest.approx(expected, rel=1e-5)


def test_no_bigram_occurs_twice_in_a_long_translation() -> None:
    model = FakeModel(num_free=4, seed=5, eos_bonus=-20.0)
    _, batch = sources(6, 5)
    repeats = 0
    for n in (0, 2):
        options = SearchConfig(beam_size=3, no_repeat_ngram=n)
        for (best,) in beam_search(model, batch, options, max_lengths_B=[14] * 6):
            bigrams = list(zip(best.ids, best.ids[1:], strict=False))
            repeats += len(bigrams) - len(set(bigrams)) if n == 0 else 0
            assert n == 0 or len(bigrams) == len(set(bigrams))
    assert repeats > 0
