"""Required words against every hypothesis of a tiny vocabulary that contains them."""

import math
from functools import partial

import pytest

from seq2seq_attn.errors import UsageError
from seq2seq_attn.text.vocab import EOS, UNK
from tests.search import searching
from tests.search.fake_model import FakeModel, sources
from tests.search.searching import A, B, best_of_all

IDS = {
    "a": [A],
    "b": [B],
    "ab": [A, B],
    "ba": [B, A],
    "aa": [A, A],
    "strange": [UNK],
}
search = partial(searching.search, method="required", to_ids=lambda text: IDS.get(text, []))


def contains(ids, phrase):
    return any(ids[at : at + len(phrase)] == phrase for at in range(len(ids)))


@pytest.mark.parametrize(
    ("required", "length_penalty"),
    [
        (["a"], 0.0),
        (["b", "a"], 1.0),
        (["ab", "ba"], 0.0),
        (["aa", "b"], 1.0),
        ([], 0.0),
    ],
)
def test_a_beam_wide_enough_finds_the_best_of_all(required, length_penalty):
    model = FakeModel(
        num_free=2,
        seed=5,
        sharpness=1.0,
        eos_bonus=1.0,
    )
    ids, batch = sources(6, 5)
    options = {"length_penalty": length_penalty, "required": required}
    found = search(model, batch, [5] * 6, beam_size=200, **options)

    def score(source, candidate):
        if not all(contains(candidate, IDS[word]) for word in required):
            return -math.inf
        return model.log_prob(source, candidate) / (len(candidate) + 1) ** length_penalty

    for source, [best] in zip(ids, found, strict=True):
        expected, value = best_of_all(score, source, 5)[0]
        assert (best.ids, best.score) == (expected, pytest.approx(value, rel=1e-4))


def test_a_narrow_beam_keeps_hypotheses_that_have_yet_to_meet_a_word():
    """The words are very improbable, so that a beam would never keep them."""
    model = FakeModel(
        num_free=6,
        seed=3,
        sharpness=4.0,
        eos_bonus=1.0,
    )
    _, batch = sources(8, 3)
    for [best] in search(model, batch, [14] * 8, beam_size=5):
        assert not contains(best.ids, [A, B])
    for beam_size in (3, 5):
        for [best] in search(model, batch, [14] * 8, beam_size=beam_size, required=["ab"]):
            assert contains(best.ids, [A, B])


def test_no_subword_continues_a_required_word():
    """B continues a word and always follows A where the search allows it."""
    after = {(A,): {B: 0.9, EOS: 0.1}, (A, B): {EOS: 1.0}, (A, B, A): {EOS: 0.9, B: 0.1}}
    model = FakeModel(scripted={(): {A: 1.0}, **after})
    _, batch = sources(1)
    [[best]] = search(model, batch, [6], beam_size=4, required=["a"])
    assert best.ids == [A, B]
    [[best]] = search(model, batch, [6], beam_size=4, required=["a"], continuing=[B])
    assert best.ids == [A]


def test_a_hypothesis_with_all_words_ends_at_the_length_limit():
    never = FakeModel(num_free=3, eos_bonus=-30.0)
    for [best] in search(never, sources(4)[1], [6] * 4, beam_size=4, required=["ab"]):
        assert best.is_finished
        assert contains(best.ids, [A, B])


def test_no_slot_stays_free_while_there_are_continuations():
    model = FakeModel(num_free=6)
    options = {
        "beam_size": 4,
        "n_best": 4,
        "required": ["a"],
    }
    [found] = search(model, sources(1)[1], [1], **options)
    assert len(found) == 4


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"required": ["a", "strange"]}, "required='strange'"),
        ({"required": ["a", "unheard"]}, "required='unheard'"),
        ({"required": ["ab"], "beam_size": 2}, "beam_size=2"),
    ],
)
def test_words_without_known_tokens_or_slots_are_refused(options, message):
    with pytest.raises(UsageError, match=message):
        search(FakeModel(), sources(1)[1], [5], **options)


def test_words_that_do_not_fit_are_cut():
    model = FakeModel(scripted={(): {EOS: 1.0}})
    [[best]] = search(model, sources(1)[1], [1], required=["ab"])
    assert best.is_cut
