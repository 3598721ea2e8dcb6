"""Trains what the bottleneck experiment needs, several runs at a time; finished runs are kept, others resumed."""

from __future__ import annotations

from collections.abc import Sequence

from scripts.bottleneck_experiment.plan import Training
from seq2seq_attn.commands.train_runs import PlannedRun, train_runs


def train_all(trainings: Sequence[Training], jobs: int) -> None:
    """Train what is not finished, `jobs` at a time, each on one thread."""
    failed = train_runs([planned_run(one) for one in trainings], at_once=jobs)
    if failed:
        raise SystemExit(f"failed, see the logs: {', '.join(str(one.log_path) for one in failed)}")


def is_finished(training: Training) -> bool:
    """Whether the run is there and finished.

    Raises:
        UsageError: it was trained with other settings than planned.
    """
    return planned_run(training).is_finished()


def planned_run(training: Training) -> PlannedRun:
    """How `seq2seq train` is called for it."""
    return PlannedRun.of(training.run, [f"bottleneck/{training.inputs}"], [*training.settings, f"seed={training.seed}"])
