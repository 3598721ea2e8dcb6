"""Learning rate, teacher forcing ratio and weights of objectives as functions of the update (0 =
first)."""

import math
from typing import TypedDict

from seq2seq_attn.config import ScheduleConfig, TeacherForcingConfig, TrainConfig
from seq2seq_attn.errors import UsageError

FALLING = ("cosine", "trapezoid")
"""schedules of the learning rate that are planned to the end of training"""
EXPONENTIAL_FLOOR = 0.01
"""value of the paper's k^i at the end of our exponential schedule of the teacher forcing ratio"""


class UpdateSettings(TypedDict):
    """The scheduled settings of an update, arguments of `Updater.apply_update`."""

    learning_rate: float
    teacher_forcing_ratio: float
    objective_weights: dict[str, float]
    """by name; 0 where an objective does not act"""


class Schedules:
    """The schedules of a training run. They hold no state: a resume gets the same values for the
    same update."""

    def __init__(self, config: TrainConfig, *, updates_per_epoch: int) -> None:
        """`updates_per_epoch`: in the first epoch; with token batches, other epochs may differ a
        little. Raises UsageError: a schedule needs the end of training, which is not set, or an
        objective starts after its end."""
        self._config = config
        self.updates_per_epoch = updates_per_epoch
        self.total_updates = config.max_updates
        if config.max_epochs is not None:
            num_updates = config.max_epochs * updates_per_epoch
            self.total_updates = min(num_updates, config.max_updates or num_updates)
        self.settings(config.schedule.warmup_updates)  # raise now if a schedule needs the end
        for name, objective in config.objectives.items():
            is_part = objective.start > 0.0 or objective.end < 1.0
            needs_end = is_part and self.total_updates is None
            if objective.start >= objective.end or needs_end:
                raise UsageError(
                    f"train.objectives.{name}: start={objective.start} and end={objective.end} are "
                    "shares of the training run: expected a start before the end, and "
                    "train.max_epochs or train.max_updates"
                )

    def settings(self, update: int, *, plateau_factor: float = 1.0) -> UpdateSettings:
        """The settings of this update. `plateau_factor`: `TrainState.plateau_factor`."""
        factor = learning_rate_factor(
            update, self._config.schedule, total_updates=self.total_updates
        )
        total = self.total_updates or 0
        weights = {}
        for name, objective in self._config.objectives.items():
            has_begun = update >= objective.start * total
            # The total is an estimate: with batches of tokens, epochs differ in their updates.
            is_over = objective.end < 1.0 and update >= objective.end * total
            weights[name] = objective.weight if has_begun and not is_over else 0.0
        return {
            "learning_rate": self._config.optimizer.learning_rate * factor * plateau_factor,
            "teacher_forcing_ratio": teacher_forcing_ratio(update, self._config.teacher_forcing),
            "objective_weights": weights,
        }

    def late_objectives(self, num_updates: int) -> list[str]:
        """Objectives that start after the first `num_updates` updates."""
        last_update = max(0, num_updates - 1)
        late = []
        for name, objective in self._config.objectives.items():
            if objective.weight and last_update < objective.start * (self.total_updates or 0):
                late.append(name)
        return late

    def is_cut(self, num_updates: int) -> bool:
        """Whether a stop after `num_updates` cuts a falling schedule short, by more than a tenth of
        its updates."""
        falls = self._config.schedule.name in FALLING
        return falls and self.total_updates is not None and num_updates < 0.9 * self.total_updates


def learning_rate_factor(
    update: int, config: ScheduleConfig, *, total_updates: int | None
) -> float:
    """The factor on the configured learning rate at this update.

    Linear warm-up to 1 in `warmup_updates`, then: `inverse_sqrt` falls as sqrt(warmup / update)
    (Vaswani et al. 2017, section 5.3); `cosine` falls to `final_ratio` at `total_updates`
    (Loshchilov and Hutter 2017, without restarts); `trapezoid` stays at 1 until the last `cooldown`
    of all updates, in which it falls linearly to `final_ratio` (Hägele et al. 2024); `constant` and
    `plateau` stay at 1 (the plateau's own factor, which depends on scores, is separate). Raises
    UsageError: `cosine` or `trapezoid` without a known end of training."""
    warmup = config.warmup_updates
    if update < warmup:
        return (update + 1) / warmup
    if config.name == "inverse_sqrt":
        return math.sqrt(max(warmup, 1) / max(update, 1))
    if config.name not in FALLING:
        return 1.0
    if total_updates is None:
        raise UsageError(
            f"train.schedule.name={config.name!r}: needs to know when training ends;"
            " set train.max_epochs or train.max_updates, or use 'inverse_sqrt', 'plateau' or "
            "'constant'"
        )
    if config.name == "cosine":
        progress = min(1.0, (update - warmup) / max(1, total_updates - warmup))
        share = 0.5 * (1.0 + math.cos(math.pi * progress))
    else:
        num_left = max(0.0, total_updates - update)
        share = min(1.0, num_left / max(1.0, config.cooldown * total_updates))
    return config.final_ratio + (1.0 - config.final_ratio) * share


def teacher_forcing_ratio(update: int, config: TeacherForcingConfig) -> float:
    """Scheduled sampling: the probability in [0, 1] that a decoder step of this update sees the
    reference token (Bengio, Vinyals, Jaitly and Shazeer 2015, "Scheduled Sampling for Sequence
    Prediction with Recurrent Neural Networks", section 2.4). Their exponential and inverse sigmoid
    schedules approach 0 asymptotically, their linear one stops at a floor. Ours go from `start` to
    `end` in `num_updates`, and stay there."""
    if update <= 0 or config.schedule == "constant":
        return config.start
    if update >= config.num_updates:
        return config.end
    if config.schedule == "linear":
        share = 1.0 - update / config.num_updates
    elif config.schedule == "exponential":
        # k^i, with k such that it ends at the floor; scaled to end at 0
        power: float = EXPONENTIAL_FLOOR ** (update / config.num_updates)
        share = (power - EXPONENTIAL_FLOOR) / (1.0 - EXPONENTIAL_FLOOR)
    else:
        share = _inverse_sigmoid(update, config.num_updates)
    return config.end + (config.start - config.end) * share


def _inverse_sigmoid(update: int, num_updates: int) -> float:
    """k / (k + exp(i / k)), with its midpoint halfway (k ln k = num_updates / 2), scaled to go from
    1 to 0."""
    low = 1.0  # k ln k grows from 0 past num_updates / 2 between low and k
    k = num_updates + 2.0
    for _ in range(100):
        middle = (low + k) / 2
        if middle * math.log(middle) < num_updates / 2:
            low = middle
        else:
            k = middle
    first = k / (k + 1.0)
    last = 1.0 / (k + 1.0)
    value = 1.0 / (1.0 + math.exp((update - num_updates / 2) / k))
    return (value - last) / (first - last)
