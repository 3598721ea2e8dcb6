"""Samples follow the model's distribution, and depend on nothing but their source, number and seed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
import pytest

from seq2seq_attn.data.batch import collate_source
from seq2seq_attn.search.greedy import greedy_search
from seq2seq_attn.search.options import SearchOptions
from seq2seq_attn.search.sample import sample_search
from seq2seq_attn.text.vocab import EOS
from tests.search.fake_model import FakeModel, log_prob_of
from tests.search.test_rules import UNK, A, B

SOURCE = [5, 6, 7]
PROBABILITIES = {EOS: 0.1, UNK: 0.2, A: 0.3, B: 0.4}
MODEL = FakeModel(scripted={(): PROBABILITIES})
NUM_DRAWS = 4_000


def first_tokens(**options: float) -> Counter[int]:
    batch = collate_source([SOURCE] * NUM_DRAWS)
    chosen = SearchOptions(method="sample", **options)  # type: ignore[arg-type]
    found = sample_search(MODEL, batch, chosen, numbers_B=range(NUM_DRAWS), max_lengths_B=[1] * NUM_DRAWS)
    return Counter(hypothesis.ids[0] if hypothesis.ids else EOS for hypothesis in found)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, PROBABILITIES),
        ({"temperature": 0.5}, {token: p * p / 0.3 for token, p in PROBABILITIES.items()}),
        ({"top_k": 2}, {A: 3 / 7, B: 4 / 7}),
        ({"top_p": 0.35}, {B: 1.0}),
        ({"top_p": 0.5}, {A: 3 / 7, B: 4 / 7}),
        ({"top_p": 0.75}, {UNK: 2 / 9, A: 3 / 9, B: 4 / 9}),
        ({"top_k": 3, "top_p": 0.5}, {A: 3 / 7, B: 4 / 7}),
        ({"temperature": 0.01}, {B: 1.0}),
    ],
)
def test_samples_have_the_distribution_s_frequencies(options: dict[str, float], expected: dict[int, float]) -> None:
    counts = first_tokens(**options)
    assert set(counts) == set(expected)
    for token, probability in expected.items():
        error = np.sqrt(probability * (1.0 - probability) / NUM_DRAWS)
        assert counts[token] / NUM_DRAWS == pytest.approx(probability, abs=4.0 * error + 1e-9)


def test_probabilities_that_are_no_numbers_end_no_search() -> None:
    model = FakeModel(scripted={(): {EOS: float("nan"), A: 0.5, B: 0.5}})
    options = SearchOptions(method="sample")
    [found] = sample_search(model, collate_source([SOURCE]), options, numbers_B=[0], max_lengths_B=[1])
    assert len(found.ids) <= 1


def test_a_sample_depends_on_its_source_number_and_seed_alone() -> None:
    model = FakeModel(num_free=8, seed=1, sharpness=0.5)
    ids = [[5, 6, 7], [8], [5, 6, 7], [9, 9, 9, 9]]

    def drawn(sources: list[list[int]], numbers: list[int], seed: int = 1) -> list[list[int]]:
        options = SearchOptions(method="sample", seed=seed)
        found = sample_search(
            model,
            collate_source(sources),
            options,
            numbers_B=numbers,
            max_lengths_B=[6 + n for n in range(len(ids))][: len(numbers)],
        )
        return [hypothesis.ids[:6] for hypothesis in found]

    together = drawn(ids, [0, 0, 1, 0])
    assert [drawn([source], [number])[0] for source, number in zip(ids, [0, 0, 1, 0], strict=True)] == together
    assert together[0] != together[2]
    assert drawn(ids, [0, 0, 1, 0], seed=2) != together


def test_a_sample_stays_the_same_when_others_end_before_it() -> None:
    """In a batch of the same source, where about half of the samples that are left end with each token."""
    numbers = range(30)
    model = FakeModel(num_free=8, seed=1, sharpness=0.5, eos_bonus=2.0)
    options = SearchOptions(method="sample")

    def drawn(chosen: Sequence[int]) -> list[list[int]]:
        batch = collate_source([SOURCE] * len(chosen))
        found = sample_search(model, batch, options, numbers_B=chosen, max_lengths_B=[9] * len(chosen))
        return [hypothesis.ids for hypothesis in found]

    together = drawn(numbers)
    assert len({len(ids) for ids in together}) > 3
    assert [drawn([number])[0] for number in numbers] == together


@pytest.mark.parametrize(("top_p", "expected"), [(0.25, 1), (0.5, 2), (0.51, 3), (0.75, 3)])
def test_tokens_that_reach_the_share_exactly_are_enough(top_p: float, expected: int) -> None:
    """Of four equally probable tokens."""
    model = FakeModel(scripted={(): dict.fromkeys(PROBABILITIES, 0.25)})
    batch, options = collate_source([SOURCE] * 200), SearchOptions(method="sample", top_p=top_p)
    found = sample_search(model, batch, options, numbers_B=range(200), max_lengths_B=[1] * 200)
    assert len({tuple(hypothesis.ids) for hypothesis in found}) == expected


def test_log_probs_are_the_model_s_own() -> None:
    model = FakeModel(num_free=8, seed=4)
    options = SearchOptions(method="sample", temperature=0.3, top_k=3)
    ids = [[5, 6], [7]]
    for source, hypothesis in zip(
        ids,
        sample_search(model, collate_source(ids), options, numbers_B=[0, 0], max_lengths_B=[5, 5]),
        strict=True,
    ):
        expected = log_prob_of(model, source, hypothesis.ids, is_finished=hypothesis.is_finished)
        assert hypothesis.log_prob == pytest.approx(expected, rel=1e-5)


def test_a_low_temperature_is_greedy_search() -> None:
    model = FakeModel(num_free=8, seed=4)
    batch = collate_source([[5, 6], [7], [8, 8, 8]])
    cold = SearchOptions(method="sample", temperature=0.01)
    samples = sample_search(model, batch, cold, numbers_B=[0] * 3, max_lengths_B=[7] * 3)
    greedy = greedy_search(model, batch, max_lengths_B=[7] * 3)
    assert [sample.ids for sample in samples] == [one.ids for one in greedy]
