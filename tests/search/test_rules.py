"""Prefixes, n-grams that occur once, and what a translation never holds."""

import pytest
import torch

from seq2seq_attn.data.batch import collate_source
from seq2seq_attn.search.base import SearchSource
from seq2seq_attn.search.loop import Rules
from seq2seq_attn.text.vocab import BOS, EOS, PAD, UNK
from tests.search.fake_model import FakeModel, sources
from tests.search.searching import A, B, search


def allowed(tokens, prefixes=(), unk="keep", no_repeat_ngram=0):
    """The tokens from PAD to B that may follow each row's tokens."""
    forbidden = (PAD, BOS, UNK) if unk == "forbid" else (PAD, BOS)
    rules = Rules(forbidden, no_repeat_ngram)
    batch = collate_source([[5]] * len(tokens))
    state = rules.start(SearchSource(batch, [9] * len(tokens), prefixes), 1)
    tokens_RT = torch.tensor(tokens, dtype=torch.int64).view(len(tokens), -1)
    scores_RV, _ = rules.rescore(torch.zeros(len(tokens), B + 1), tokens_RT, state)
    return [set((scores_V == 0.0).nonzero().flatten().tolist()) for scores_V in scores_RV]


@pytest.mark.parametrize(
    ("tokens", "options", "expected"),
    [
        ([A], {}, {EOS, UNK, A, B}),
        ([A], {"unk": "forbid"}, {EOS, A, B}),
        ([A, UNK], {"no_repeat_ngram": 1}, {EOS, B}),
        ([A, B, A], {"no_repeat_ngram": 2}, {EOS, UNK, A}),
        ([A, A, B], {"no_repeat_ngram": 2}, {EOS, UNK, A, B}),
        ([A, B, B], {"no_repeat_ngram": 2}, {EOS, UNK, A}),
        ([A, B], {"no_repeat_ngram": 3}, {EOS, UNK, A, B}),
    ],
)
def test_specials_and_repeated_ngrams_are_never_chosen(tokens, options, expected):
    assert allowed([tokens], **options) == [expected]


def test_a_prefix_leaves_no_impossible_hypotheses():
    """At the forced step, one slot of the beam has a continuation; the others must stay free."""
    model = FakeModel(
        num_free=6,
        seed=3,
        eos_bonus=1.0,
    )
    _, batch = sources(6, 3)
    for best in search(
        model,
        batch,
        [9] * 6,
        prefixes=[[A]] * 6,
        beam_size=4,
        n_best=4,
    ):
        assert len(best) == 4
        for hypothesis in best:
            assert hypothesis.ids[:1] == [A]
            assert hypothesis.score > -torch.inf


def test_a_prefix_goes_before_the_other_rules():
    prefixes = [[A, A], [A, UNK], [A]]
    tokens = allowed([[A], [A], [A]], prefixes, unk="forbid", no_repeat_ngram=1)
    assert tokens == [{A}, {UNK}, {EOS, B}]


@pytest.mark.parametrize("beam_size", [1, 3])
def test_translations_begin_with_their_prefixes_and_keep_the_model_s_log_prob(
    beam_size,
):
    model = FakeModel(
        num_free=6,
        seed=3,
        eos_bonus=1.0,
    )
    ids, batch = sources(6, 3)
    prefixes = [[A], [B, A, A], [], [UNK], [A, A], [B]]
    found = search(model, batch, [9] * 6, prefixes=prefixes, beam_size=beam_size)
    for source, prefix, [best] in zip(ids, prefixes, found, strict=True):
        assert best.ids[: len(prefix)] == prefix
        assert best.log_prob == pytest.approx(model.forced_log_prob(source, best), rel=1e-5)
