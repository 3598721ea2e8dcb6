"""Schedules: learning rate, teacher forcing ratio and weights of objectives as functions of the
index of the update. The first update has index 0."""

import math
from typing import TypedDict

from seq2seq_attn.config import ScheduleConfig, TeacherForcingConfig, TrainConfig
from seq2seq_attn.errors import UsageError

FALLING = ("cosine", "trapezoid")
"""learning rate schedules that fall until the planned end of training"""


class UpdateSettings(TypedDict):
    """The scheduled settings of an update. The keys are arguments of `Updater.apply_update`."""

    learning_rate: float
    teacher_forcing_ratio: float
    objective_weights: dict[str, float]
    """weight of each objective by name; 0 outside the interval in which the objective is used"""


class Schedules:
    """The schedules of a training run. They have no state: the settings depend on the update alone,
    so a resume uses the same values."""

    def __init__(self, config: TrainConfig, *, updates_per_epoch: int) -> None:
        """Check the schedules.

        `updates_per_epoch` is the number of updates of the first epoch. With batches measured in
        tokens, the number of later epochs may differ slightly.

        Raises:
            UsageError: a schedule or an objective depends on the end of training, which the
                configuration does not set; or the start of an objective is not before its end.
        """
        self._config = config
        self.updates_per_epoch = updates_per_epoch
        self.total_updates = config.max_updates
        if config.max_epochs:
            num_updates = config.max_epochs * updates_per_epoch
            self.total_updates = min(num_updates, config.max_updates or num_updates)
        if config.schedule.name in FALLING and not self.total_updates:
            raise UsageError(
                f"train.schedule.name={config.schedule.name!r}: needs to know when training ends;"
                " set train.max_epochs or train.max_updates, or use 'inverse_sqrt' or 'constant'"
            )
        for name, objective in config.objectives.items():
            has_interval = objective.start > 0.0 or objective.end < 1.0
            lacks_total = has_interval and not self.total_updates
            if objective.start >= objective.end or lacks_total:
                raise UsageError(
                    f"train.objectives.{name}: start={objective.start} and end={objective.end} are "
                    "shares of the training run: expected a start before the end, and "
                    "train.max_epochs or train.max_updates"
                )

    def settings(self, update: int) -> UpdateSettings:
        """Return the settings of the update with this index."""
        factor = learning_rate_factor(
            update, self._config.schedule, total_updates=self.total_updates
        )
        total = self.total_updates or 0
        weights = {}
        for name, objective in self._config.objectives.items():
            has_begun = update >= objective.start * total
            # `total` is an estimate, because epochs of token batches differ in their updates. So an
            # objective whose end is 1 stays active after `total` updates.
            is_over = objective.end < 1.0 and update >= objective.end * total
            weights[name] = objective.weight if has_begun and not is_over else 0.0
        return {
            "learning_rate": self._config.optimizer.learning_rate * factor,
            "teacher_forcing_ratio": teacher_forcing_ratio(update, self._config.teacher_forcing),
            "objective_weights": weights,
        }

    def late_objectives(self, num_updates: int) -> list[str]:
        """Return the names of objectives that start after the first `num_updates` updates."""
        last_update = max(0, num_updates - 1)
        late = []
        for name, objective in self._config.objectives.items():
            if objective.weight and last_update < objective.start * (self.total_updates or 0):
                late.append(name)
        return late

    def is_cut(self, num_updates: int) -> bool:
        """Return whether training stops before a falling schedule has reached its end. This is the
        case if `num_updates` is less than 0.9 of the planned updates."""
        total = self.total_updates or 0
        return self._config.schedule.name in FALLING and num_updates < 0.9 * total


def learning_rate_factor(
    update: int, config: ScheduleConfig, *, total_updates: int | None
) -> float:
    """Return the factor on the configured learning rate at an update.

    The factor rises linearly to 1 during the first `warmup_updates` updates. Then it depends on the
    schedule:

    `inverse_sqrt` falls as sqrt(warmup / update) (Vaswani et al. 2017, section 5.3).

    `cosine` falls to `final_ratio` at `total_updates` (Loshchilov and Hutter 2017, without
    restarts).

    `trapezoid` stays at 1, and falls linearly to `final_ratio` in the last part of training, whose
    share of all updates is `cooldown` (Hägele et al. 2024).

    `constant` stays at 1.

    `total_updates` may be None for `inverse_sqrt` and `constant` only.
    """
    warmup = config.warmup_updates
    if update < warmup:
        return (update + 1) / warmup
    if config.name == "inverse_sqrt":
        return math.sqrt(max(warmup, 1) / max(update, 1))
    if config.name not in FALLING:
        return 1.0
    assert total_updates is not None  # `Schedules` has checked it.
    if config.name == "cosine":
        progress = min(1.0, (update - warmup) / max(1, total_updates - warmup))
        share = 0.5 * (1.0 + math.cos(math.pi * progress))
    else:
        num_left = max(0.0, total_updates - update)
        share = min(1.0, num_left / max(1.0, config.cooldown * total_updates))
    return config.final_ratio + (1.0 - config.final_ratio) * share


def teacher_forcing_ratio(update: int, config: TeacherForcingConfig) -> float:
    """Return the probability in [0, 1] that a decoder step sees the reference token at an update.

    This is scheduled sampling (Bengio, Vinyals, Jaitly and Shazeer 2015, "Scheduled Sampling for
    Sequence Prediction with Recurrent Neural Networks", section 2.4). The linear schedule goes from
    `start` to `end` in `num_updates` updates and stays there.
    """
    if update <= 0 or config.schedule == "constant":
        return config.start
    if update >= config.num_updates:
        return config.end
    share = 1.0 - update / config.num_updates
    return config.end + (config.start - config.end) * share
