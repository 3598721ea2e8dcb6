"""Required words against every hypothesis of a tiny vocabulary that contains them."""

from functools import partial

import pytest
import torch

from seq2seq_attn.errors import UsageError
from seq2seq_attn.search.required import count_met
from seq2seq_attn.text.vocab import EOS, UNK
from tests.search import searching
from tests.search.fake_model import FakeModel, sources
from tests.search.searching import A, B, best_of_all

IDS = {"a": [A], "b": [B], "ab": [A, B], "ba": [B, A], "aa": [A, A], "strange": [UNK]}
search = partial(searching.search, method="required", to_ids=lambda text: IDS.get(text, []))


def contains(ids: list[int], phrase: list[int]) -> bool:
    return any(ids[at : at + len(phrase)] == phrase for at in range(len(ids)))


@pytest.mark.parametrize(
    ("required", "length_penalty"),
    [(["a"], 0.0), (["b", "a"], 1.0), (["ab", "ba"], 0.0), (["aa", "b"], 1.0), ([], 0.0)],
)
def test_a_beam_wide_enough_finds_the_best_of_all(required, length_penalty):
    model = FakeModel(num_free=2, seed=5, sharpness=1.0, eos_bonus=1.0)
    ids, batch = sources(6, 5)
    found = search(
        model, batch, [5] * 6, beam_size=200, length_penalty=length_penalty, required=required
    )

    def score(source: list[int], candidate: list[int]) -> float:
        has_all = all(contains(candidate, IDS[word]) for word in required)
        return (
            model.log_prob(source, candidate) / (len(candidate) + 1) ** length_penalty
            if has_all
            else float("-inf")
        )

    for source, [best] in zip(ids, found, strict=True):
        expected, value = best_of_all(lambda c, s=source: score(s, c), 5)[0]
        assert (best.ids, best.score) == (expected, pytest.approx(value, rel=1e-4))
    assert not required or any(
        best.log_prob < model.log_prob(source, [])
        for source, [best] in zip(ids, found, strict=True)
    )


def test_a_narrow_beam_keeps_hypotheses_that_have_yet_to_meet_a_word():
    """The words are very improbable, so that a beam would never keep them."""
    model = FakeModel(num_free=6, seed=3, sharpness=4.0, eos_bonus=1.0)
    _, batch = sources(8, 3)
    assert not any(
        contains(best.ids, [A, B]) for [best] in search(model, batch, [14] * 8, beam_size=5)
    )
    for beam_size in (3, 5):
        for best, *_ in search(model, batch, [14] * 8, beam_size=beam_size, required=["ab"]):
            assert contains(best.ids, [A, B])


def test_no_slot_stays_free_while_there_are_continuations():
    [found] = search(
        FakeModel(num_free=6), sources(1)[1], [1], beam_size=4, n_best=4, required=["a"]
    )
    assert len(found) == 4


def test_the_state_of_a_hypothesis_is_its_tokens():
    rows = torch.tensor([[A, A, B], [B, A, A], [UNK, B, A], [UNK, UNK, UNK]])
    assert count_met(rows, [[A, B], [B, A, A]]).tolist() == [[2, 1], [1, 3], [1, 2], [0, 0]]
    assert count_met(rows[:, :0], [[A]]).tolist() == [[0]] * 4


def test_what_is_refused():
    model = FakeModel()
    _, batch = sources(1)
    for word in ("strange", "unheard"):
        with pytest.raises(UsageError, match=f"required='{word}'"):
            search(model, batch, [5], required=["a", word])
    with pytest.raises(UsageError, match="beam_size=2"):
        search(model, batch, [5], beam_size=2, required=["ab"])


def test_words_that_do_not_fit_are_cut():
    [[best]] = search(FakeModel(scripted={(): {EOS: 1.0}}), sources(1)[1], [1], required=["ab"])
    assert best.is_cut
