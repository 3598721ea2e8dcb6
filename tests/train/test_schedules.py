"""Schedules of the learning rate, of the teacher forcing ratio and of the weights of objectives."""

import pytest

from seq2seq_attn.config import ScheduleConfig, TeacherForcingConfig, TrainConfig
from seq2seq_attn.errors import UsageError
from seq2seq_attn.train.schedules import Schedules, learning_rate_factor, teacher_forcing_ratio


@pytest.mark.parametrize(
    ("settings", "factors"),
    [
        ({"name": "constant", "warmup_updates": 4}, {0: 0.25, 1: 0.5, 2: 0.75, 3: 1.0, 4: 1.0}),
        ({"name": "inverse_sqrt", "warmup_updates": 100}, {100: 1.0, 400: 0.5}),
        ({"name": "inverse_sqrt"}, {0: 1.0}),
        (
            {"name": "cosine", "warmup_updates": 20, "final_ratio": 0.1},
            {20: 1.0, 60: 0.55, 100: 0.1, 1000: 0.1},
        ),
        (
            {"name": "trapezoid", "warmup_updates": 20, "cooldown": 0.4, "final_ratio": 0.1},
            {9: 0.5, 20: 1.0, 60: 1.0, 80: 0.55, 100: 0.1, 1000: 0.1},
        ),
        ({"name": "trapezoid", "cooldown": 0.0}, {99: 1.0}),
    ],
)
def test_factors_of_the_learning_rate(settings, factors):
    config = ScheduleConfig.model_validate(settings)
    found = {update: learning_rate_factor(update, config, total_updates=100) for update in factors}
    assert found == pytest.approx(factors)


@pytest.mark.parametrize(
    ("max_epochs", "max_updates", "total"), [(3, None, 30), (3, 25, 25), (None, None, None)]
)
def test_the_plan_ends_at_the_earlier_limit(max_epochs, max_updates, total):
    config = TrainConfig(max_epochs=max_epochs, max_updates=max_updates)
    assert Schedules(config, updates_per_epoch=10).total_updates == total


@pytest.mark.parametrize(("name", "is_cut"), [("constant", False), ("trapezoid", True)])
def test_a_stop_more_than_a_tenth_before_the_end_cuts_a_falling_schedule(name, is_cut):
    config = TrainConfig.model_validate({"max_epochs": 3, "schedule": {"name": name}})
    schedules = Schedules(config, updates_per_epoch=10)
    assert [schedules.is_cut(num_updates) for num_updates in (26, 27)] == [is_cut, False]


@pytest.mark.parametrize(
    ("schedule", "ratios"),
    [
        ("constant", {0: 1.0, 10_000: 1.0}),
        ("linear", {0: 1.0, 1: 0.9992, 500: 0.6, 999: 0.2008, 1000: 0.2, 50_000: 0.2}),
    ],
)
def test_the_teacher_forcing_ratio_stays_at_its_start_or_falls_to_its_end(schedule, ratios):
    settings = {"schedule": schedule, "start": 1.0, "end": 0.2, "num_updates": 1000}
    config = TeacherForcingConfig.model_validate(settings)
    found = {update: teacher_forcing_ratio(update, config) for update in ratios}
    assert found == pytest.approx(ratios)


@pytest.mark.parametrize(
    ("update", "weights"),
    [
        (0, {"coverage": 0.0, "guided": 2.0, "entropy": 1.0}),
        (5, {"coverage": 0.0, "guided": 0.0, "entropy": 1.0}),
        (8, {"coverage": 0.5, "guided": 0.0, "entropy": 1.0}),
        # An epoch may have more updates than the first epoch.
        (11, {"coverage": 0.5, "guided": 0.0, "entropy": 1.0}),
    ],
)
def test_an_objective_acts_in_its_part_of_the_training(update, weights):
    objectives = {
        "coverage": {"weight": 0.5, "start": 0.8},
        "guided": {"weight": 2, "end": 0.5},
        "entropy": {},
    }
    config = TrainConfig.model_validate({"max_epochs": 2, "objectives": objectives})
    schedules = Schedules(config, updates_per_epoch=5)
    assert schedules.settings(update)["objective_weights"] == weights


@pytest.mark.parametrize(
    ("end", "max_epochs", "message"), [(0.5, 2, "start=0.5"), (1.0, None, "max_epochs")]
)
def test_an_objective_that_cannot_act_is_refused(end, max_epochs, message):
    settings = {"objectives": {"coverage": {"start": 0.5, "end": end}}, "max_epochs": max_epochs}
    with pytest.raises(UsageError, match=rf"train\.objectives\.coverage.*{message}"):
        Schedules(TrainConfig.model_validate(settings), updates_per_epoch=5)
