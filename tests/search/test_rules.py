"""Prefixes, n-grams that occur once, and what a translation never holds."""

import pytest
import torch

from seq2seq_attn.config import SearchConfig
from seq2seq_attn.data.batch import collate_source
from seq2seq_attn.search.base import SearchSource
from seq2seq_attn.search.loop import Rules
from seq2seq_attn.text.vocab import BOS, EOS, PAD, UNK
from tests.search.fake_model import FakeModel, sources
from tests.search.searching import A, B, search


def allowed(
    options: SearchConfig, prefixes: list[list[int]] | None, tokens: list[list[int]]
) -> list[set[int]]:
    """Of the tokens PAD to B, those that may follow each row's tokens."""
    rules = Rules(
        (PAD, BOS, UNK) if options.unk == "forbid" else (PAD, BOS), options.no_repeat_ngram
    )
    tokens_RT = torch.tensor(tokens, dtype=torch.int64).view(len(tokens), -1)
    state = rules.start(
        SearchSource(collate_source([[5]] * len(tokens)), [9] * len(tokens), prefixes or ()), 1
    )
    found, _ = rules.rescore(torch.zeros(len(tokens), B + 1), tokens_RT, state)
    return [set((row == 0.0).nonzero().flatten().tolist()) for row in found]


def test_specials_are_never_chosen():
    assert allowed(SearchConfig(), None, [[A]]) == [{EOS, UNK, A, B}]
    assert allowed(SearchConfig(unk="forbid"), None, [[A]]) == [{EOS, A, B}]
    assert not {PAD, BOS} & allowed(SearchConfig(), None, [[]])[0]


def test_an_ngram_is_not_completed_twice():
    twice = SearchConfig(no_repeat_ngram=2)
    assert allowed(twice, None, [[A, B, A], [A, A, B], [A, B, B]]) == [
        {EOS, UNK, A},
        {EOS, UNK, A, B},
        {EOS, UNK, A},
    ]
    assert allowed(SearchConfig(no_repeat_ngram=1), None, [[A, UNK]]) == [{EOS, B}]
    assert allowed(SearchConfig(no_repeat_ngram=3), None, [[A, B]]) == [{EOS, UNK, A, B}]


def test_a_prefix_leaves_no_impossible_hypotheses():
    """At the forced step, one slot of the beam has a continuation; the others must stay free."""
    model = FakeModel(num_free=6, seed=3, eos_bonus=1.0)
    _, batch = sources(6, 3)
    for best in search(model, batch, [9] * 6, prefixes=[[A]] * 6, beam_size=4, n_best=4):
        assert len(best) == 4
        assert all(
            hypothesis.ids[:1] == [A] and hypothesis.score > -torch.inf for hypothesis in best
        )


def test_a_prefix_goes_before_the_other_rules():
    options = SearchConfig(no_repeat_ngram=1, unk="forbid")
    assert allowed(options, [[A, A], [A, UNK], [A]], [[A], [A], [A]]) == [{A}, {UNK}, {EOS, B}]


@pytest.mark.parametrize("beam_size", [1, 3])
def test_translations_begin_with_their_prefixes_and_keep_the_model_s_log_prob(
    beam_size,
):
    model = FakeModel(num_free=6, seed=3, eos_bonus=1.0)
    ids, batch = sources(6, 3)
    prefixes = [[A], [B, A, A], [], [UNK], [A, A], [B]]
    found = search(model, batch, [9] * 6, prefixes=prefixes, beam_size=beam_size)
    for source, prefix, [best] in zip(ids, prefixes, found, strict=True):
        assert best.ids[: len(prefix)] == prefix
        assert best.log_prob == pytest.approx(
            model.log_prob(source, best.ids, is_finished=best.is_finished), rel=1e-5
        )
