"""Learning rate, teacher forcing ratio and weights of objectives as functions of the update."""

from __future__ import annotations

from seq2seq_attn.config import ObjectiveConfig, TrainConfig
from seq2seq_attn.errors import UsageError
from seq2seq_attn.train.optim import FALLING, learning_rate_factor
from seq2seq_attn.train.teacher_forcing import teacher_forcing_ratio


class Schedules:
    """The schedules of a training run. They hold no state: a resume gets the same values for the same update."""

    def __init__(self, config: TrainConfig, *, updates_per_epoch: int) -> None:
        """`updates_per_epoch`: in the first epoch; with token batches, other epochs may differ a little.

        Raises:
            UsageError: a schedule needs the end of training, which is not set.
        """
        self._config = config
        ends = []
        if config.max_epochs is not None:
            ends.append(config.max_epochs * updates_per_epoch)
        if config.max_updates is not None:
            ends.append(config.max_updates)
        self.total_updates = min(ends, default=None)
        # raise now if a schedule needs the end
        self.learning_rate(config.schedule.warmup_updates, plateau_factor=1.0)
        self.objective_weights(0)

    def learning_rate(self, update: int, *, plateau_factor: float) -> float:
        """The learning rate of this update (0 = first)."""
        factor = learning_rate_factor(update, self._config.schedule, total_updates=self.total_updates)
        return self._config.optimizer.learning_rate * factor * plateau_factor

    def is_cut(self, num_updates: int) -> bool:
        """Whether a stop after `num_updates` cuts a falling schedule short, by more than a tenth of its updates."""
        falls = self._config.schedule.name in FALLING
        return falls and self.total_updates is not None and num_updates < 0.9 * self.total_updates

    def teacher_forcing_ratio(self, update: int) -> float:
        """The teacher forcing ratio of this update (0 = first)."""
        config = self._config.teacher_forcing
        return teacher_forcing_ratio(
            update, schedule=config.schedule, start=config.start, end=config.end, num_updates=config.num_updates
        )

    def objective_weights(self, update: int) -> dict[str, float]:
        """The weights of the objectives in this update (0 = first); 0 where an objective does not act.

        Raises:
            UsageError: the start of an objective is not before its end, or `start` and `end` are shares of a
                training run without an end.
        """
        objectives = self._config.objectives.items()
        return {
            name: objective.weight if self._acts(name, objective, update) else 0.0 for name, objective in objectives
        }

    def late_objectives(self, num_updates: int) -> list[str]:
        """Objectives that start after the first `num_updates` updates."""
        total = self.total_updates or 0
        objectives = self._config.objectives.items()
        return [
            name
            for name, objective in objectives
            if objective.weight and 0 < objective.start and num_updates - 1 < objective.start * total
        ]

    def _acts(self, name: str, objective: ObjectiveConfig, update: int) -> bool:
        if (objective.start, objective.end) == (0.0, 1.0):
            return True
        if objective.start >= objective.end:
            raise UsageError(
                f"train.objectives.{name}.start={objective.start}: expected less than its end, {objective.end}"
            )
        if self.total_updates is None:
            raise UsageError(
                f"train.objectives.{name}: start={objective.start} and end={objective.end} are shares of the training "
                "run, whose end is not set; set train.max_epochs or train.max_updates"
            )
        # the number of updates is an estimate: with batches of tokens, epochs differ in theirs
        is_over = objective.end < 1.0 and update >= objective.end * self.total_updates
        return objective.start * self.total_updates <= update and not is_over


def always_forces(config: TrainConfig) -> bool:
    """Whether every decoder step of a training run sees the reference token."""
    forcing = config.teacher_forcing
    return forcing.start == 1.0 and (forcing.schedule == "constant" or forcing.end == 1.0)
