from __future__ import annotations

import itertools
import math

import pytest

from seq2seq_attn.train.teacher_forcing import SHAPES, teacher_forcing_ratio


def ratio(update: int, schedule: str, start: float = 1.0, end: float = 0.2, num_updates: int = 1000) -> float:
    return teacher_forcing_ratio(update, schedule=schedule, start=start, end=end, num_updates=num_updates)


@pytest.mark.parametrize("schedule", sorted(SHAPES))
def test_goes_from_start_to_end_and_stays(schedule: str) -> None:
    assert ratio(0, schedule) == 1.0
    assert ratio(1000, schedule) == ratio(50_000, schedule) == 0.2
    values = [ratio(update, schedule) for update in range(0, 1001, 10)]
    assert all(later < earlier for earlier, later in itertools.pairwise(values))


@pytest.mark.parametrize("schedule", sorted(SHAPES))
def test_has_no_jump_at_either_end(schedule: str) -> None:
    assert ratio(1, schedule) == pytest.approx(1.0, abs=0.01)
    assert ratio(999, schedule) == pytest.approx(0.2, abs=0.01)


def test_constant_stays_at_start() -> None:
    assert ratio(0, "constant", start=0.5) == ratio(10_000, "constant", start=0.5) == 0.5


def test_linear_is_half_way_in_the_middle() -> None:
    assert ratio(500, "linear") == pytest.approx(0.6)


def test_exponential_falls_by_the_same_factor_each_update() -> None:
    # before scaling: k^i, so differences shrink by k
    steps = [ratio(i, "exponential") - ratio(i + 1, "exponential") for i in (0, 1, 500)]
    k = 0.01 ** (1 / 1000)
    assert steps[1] / steps[0] == pytest.approx(k)
    assert steps[2] / steps[0] == pytest.approx(k**500)


def test_inverse_sigmoid_is_the_papers_curve() -> None:
    # scaling to meet 1 and 0 exactly is linear, so differences keep the paper's proportions: k / (k + exp(i / k))
    k = 1000.0
    num_updates = round(2 * k * math.log(k))

    def paper(i: int) -> float:
        return k / (k + math.exp(i / k))

    def ours(i: int) -> float:
        return ratio(i, "inverse_sigmoid", 1.0, 0.0, num_updates)

    for i in (2000, 5000, 7000, 9000, 12_000):
        assert ours(i) == pytest.approx(paper(i), abs=2e-3)
