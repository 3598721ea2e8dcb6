"""Samples follow the model's distribution, and depend on nothing but their source, number and
seed."""

from collections import Counter

import numpy as np
import pytest

from seq2seq_attn.data.batch import collate_source
from seq2seq_attn.text.vocab import EOS, UNK
from tests.search.fake_model import FakeModel
from tests.search.searching import A, B, search

SOURCE = [5, 6, 7]
PROBABILITIES = {
    EOS: 0.1,
    UNK: 0.2,
    A: 0.3,
    B: 0.4,
}
MODEL = FakeModel(scripted={(): PROBABILITIES})
NUM_DRAWS = 1_000


def samples(model, sources, limits, number=1, **options):
    batch = collate_source(sources)
    return search(
        model,
        batch,
        limits,
        method="sample",
        n_best=number,
        **options,
    )


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, PROBABILITIES),
        ({"temperature": 0.5}, {token: p * p / 0.3 for token, p in PROBABILITIES.items()}),
        ({"top_k": 2}, {A: 3 / 7, B: 4 / 7}),
        ({"top_p": 0.35}, {B: 1.0}),
        ({"top_p": 0.5}, {A: 3 / 7, B: 4 / 7}),
        ({"top_k": 3, "top_p": 0.5}, {A: 3 / 7, B: 4 / 7}),
    ],
)
def test_samples_have_the_distribution_s_frequencies(options, expected):
    [drawn] = samples(MODEL, [SOURCE], [1], NUM_DRAWS, **options)
    counts = Counter(hypothesis.ids[0] if hypothesis.ids else EOS for hypothesis in drawn)
    assert counts.keys() == expected.keys()
    for token, probability in expected.items():
        error = np.sqrt(probability * (1.0 - probability) / NUM_DRAWS)
        assert counts[token] / NUM_DRAWS == pytest.approx(probability, abs=4.0 * error + 1e-9)


def test_probabilities_that_are_no_numbers_end_no_search():
    model = FakeModel(
        scripted={
            (): {
                EOS: float("nan"),
                A: 0.5,
                B: 0.5,
            }
        }
    )
    [[drawn]] = samples(model, [SOURCE], [1])
    assert len(drawn.ids) <= 1


def test_a_sample_depends_on_its_source_number_and_seed_alone():
    model = FakeModel(
        num_free=8,
        seed=1,
        sharpness=0.5,
    )
    sources = [[5, 6, 7], [8]]

    def draw(sources, number, seed=1):
        drawn = []
        for hypotheses in samples(model, sources, [6, 7][: len(sources)], number, seed=seed):
            drawn.append([hypothesis.ids[:6] for hypothesis in hypotheses])
        return drawn

    together = draw(sources, 2)
    for row, source in enumerate(sources):
        assert draw([source], 2) == [together[row]]
        assert draw([source], 1) == [together[row][:1]]
    assert together[0][0] != together[0][1]
    assert draw(sources, 2, seed=2) != together


@pytest.mark.parametrize(
    ("top_p", "expected"),
    [
        (0.25, 1),
        (0.5, 2),
        (0.51, 3),
        (0.75, 3),
    ],
)
def test_tokens_that_reach_the_share_exactly_are_enough(top_p, expected):
    """Of four equally probable tokens."""
    model = FakeModel(scripted={(): dict.fromkeys(PROBABILITIES, 0.25)})
    [drawn] = samples(model, [SOURCE], [1], 200, top_p=top_p)
    assert len({tuple(hypothesis.ids) for hypothesis in drawn}) == expected
