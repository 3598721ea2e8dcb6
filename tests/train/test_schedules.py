"""Schedules of the learning rate and of the teacher forcing ratio."""

from __future__ import annotations

import itertools
import math

import pytest

from seq2seq_attn.config import ScheduleConfig, TeacherForcingConfig, TrainConfig
from seq2seq_attn.errors import UsageError
from seq2seq_attn.train.schedules import SHAPES, Plateau, Schedules, learning_rate_factor, teacher_forcing_ratio


def factor(update: int, total: int | None = 100, **settings: object) -> float:
    return learning_rate_factor(update, ScheduleConfig.model_validate(settings), total_updates=total)


def test_warm_up_is_linear_and_never_zero() -> None:
    values = [factor(update, name="constant", warmup_updates=4) for update in range(6)]
    assert values == [0.25, 0.5, 0.75, 1.0, 1.0, 1.0]


def test_inverse_sqrt_continues_the_warm_up() -> None:
    settings = {"name": "inverse_sqrt", "warmup_updates": 100}
    assert factor(100, **settings) == 1.0
    assert factor(400, **settings) == pytest.approx(0.5)
    assert factor(0, name="inverse_sqrt") == 1.0


def test_cosine_ends_at_its_final_ratio() -> None:
    settings = {"name": "cosine", "warmup_updates": 20, "final_ratio": 0.1}
    assert factor(20, **settings) == 1.0
    assert factor(60, **settings) == pytest.approx(0.55)
    assert factor(100, **settings) == factor(1000, **settings) == pytest.approx(0.1)


def test_trapezoid_falls_at_the_end_only() -> None:
    settings = {"name": "trapezoid", "warmup_updates": 20, "cooldown": 0.4, "final_ratio": 0.1}
    assert factor(9, **settings) == 0.5
    assert factor(20, **settings) == factor(60, **settings) == 1.0
    assert factor(80, **settings) == pytest.approx(0.55)
    assert factor(100, **settings) == factor(1000, **settings) == pytest.approx(0.1)
    assert factor(99, name="trapezoid", cooldown=0.0) == 1.0


@pytest.mark.parametrize("name", ["cosine", "trapezoid"])
def test_a_schedule_without_an_end_is_refused(name: str) -> None:
    with pytest.raises(UsageError, match=rf"train\.schedule\.name='{name}'.*max_epochs"):
        factor(0, total=None, name=name)
    unlimited = TrainConfig.model_validate({"max_epochs": None, "schedule": {"name": name, "warmup_updates": 10}})
    with pytest.raises(UsageError, match=name):
        Schedules(unlimited, updates_per_epoch=10)


def test_plan_ends_at_the_earlier_limit() -> None:
    assert Schedules(TrainConfig(max_epochs=3), updates_per_epoch=10).total_updates == 30
    assert Schedules(TrainConfig(max_epochs=3, max_updates=25), updates_per_epoch=10).total_updates == 25
    assert Schedules(TrainConfig(max_epochs=None), updates_per_epoch=10).total_updates is None


def test_plateau_shrinks_after_its_patience() -> None:
    config = ScheduleConfig(name="plateau", factor=0.5, patience=1)
    plateau = Plateau()
    factors = []
    for is_better in (True, False, False, False, False, True, False):
        plateau.record(is_better, config)
        factors.append(plateau.factor)
    assert factors == [1.0, 1.0, 0.5, 0.5, 0.25, 0.25, 0.25]


def ratio(update: int, schedule: str, start: float = 1.0, end: float = 0.2, num_updates: int = 1000) -> float:
    settings = {"schedule": schedule, "start": start, "end": end, "num_updates": num_updates}
    return teacher_forcing_ratio(update, TeacherForcingConfig.model_validate(settings))


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


def test_an_objective_acts_in_its_part_of_the_training():
    objectives = {
        "coverage": {"weight": 0.5, "start": 0.8},
        "guided": {"weight": 2, "end": 0.5},
        "entropy": {"weight": 1},
    }
    schedules = Schedules(TrainConfig.model_validate({"max_epochs": 2, "objectives": objectives}), updates_per_epoch=5)
    assert schedules.objective_weights(0) == {"coverage": 0.0, "guided": 2.0, "entropy": 1.0}
    assert schedules.objective_weights(5) == {"coverage": 0.0, "guided": 0.0, "entropy": 1.0}
    assert schedules.objective_weights(8) == {"coverage": 0.5, "guided": 0.0, "entropy": 1.0}
    assert schedules.objective_weights(11)["coverage"] == 0.5  # epochs may have more updates than the first


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"objectives": {"coverage": {"start": 0.5, "end": 0.5}}}, "start=0.5: expected less than its end, 0.5"),
        ({"objectives": {"coverage": {"start": 0.5}}, "max_epochs": None}, "whose end is not set"),
    ],
)
def test_an_objective_that_cannot_act_is_refused(settings, message):
    with pytest.raises(UsageError, match=message):
        Schedules(TrainConfig.model_validate(settings), updates_per_epoch=5)
