"""Trains a system of the race under a clock of CPU time, which keeps its checkpoints.

This runs in the environment of the system, so it imports only the standard library before it knows the trainer. The
clock counts the user and system time of the process and of its children. Hooks after each update read it; the time to
write a checkpoint is not counted.
"""

import json
import math
import os
import shutil
import sys
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import Any
from unittest import mock

CLOCK = "clock.json"
"""in the folder of each checkpoint: `minutes`, the CPU time when it was kept"""
FINISHED = "finished"
"""a file beside the checkpoints, once the last is kept"""
Save = Callable[[Path], object]


def checkpoints(folder: Path) -> list[tuple[float, Path]]:
    """The minutes and the folder of each checkpoint, the first at first."""
    paths = folder.glob(f"*/{CLOCK}")
    return sorted((json.loads(path.read_text(encoding="utf-8"))["minutes"], path.parent) for path in paths)


def cpu_seconds() -> float:
    """User and system time of this process and of the children that it has waited for."""
    return sum(os.times()[:4])


class Clock:
    """CPU time of a training, with that of the sessions before up to the checkpoint that this one starts from.

    A new training counts the start of its process; a resumed one counts from its first update on.
    """

    def __init__(self, folder: Path, minutes: Sequence[float]) -> None:
        kept = checkpoints(folder)
        self.last: Path | None = kept[-1][1] if kept else None
        """the checkpoint to start from"""
        self._before = kept[-1][0] if kept else 0.0
        self._folder, self._parent = folder, os.getppid()
        self._marks = [mark for mark in minutes if mark > self._before]
        self._offset_s = None if kept else 0.0
        """added to the CPU time of this process; unknown before the first update of a resumed session"""

    @property
    def is_running(self) -> bool:
        """Whether a checkpoint is still to be kept."""
        return bool(self._marks)

    @property
    def minutes(self) -> float:
        if self._offset_s is None:
            self._offset_s = 60 * self._before - cpu_seconds()
        return (cpu_seconds() + self._offset_s) / 60

    def check(self, save: Save) -> None:
        """After an update: keep a checkpoint if one is due, and end the process after the last. `save` writes one into
        a folder. A process whose parent is gone ends, since the race may be running again."""
        if os.getppid() != self._parent:
            os._exit(1)
        if self.minutes >= self._marks[0]:
            self.keep(save)
            if not self.is_running:
                self.finish()

    def keep(self, save: Save) -> None:
        """Write a checkpoint; the clock stands still."""
        minutes = self.minutes
        unfinished = self._folder / ".unfinished"
        shutil.rmtree(unfinished, ignore_errors=True)
        unfinished.mkdir(parents=True)
        save(unfinished)
        (unfinished / CLOCK).write_text(json.dumps({"minutes": minutes}), encoding="utf-8")
        unfinished.rename(self._folder / f"{minutes:.4f}")
        self._marks = [mark for mark in self._marks if mark > minutes]
        self._offset_s = 60 * minutes - cpu_seconds()

    def finish(self) -> None:
        """End the process: the last checkpoint is kept."""
        (self._folder / FINISHED).touch()
        os._exit(0)


def train_ours(clock: Clock, task: dict[str, Any]) -> None:
    """`seq2seq train`, whose last state and averaged weights are kept; it may end before the last mark."""
    from seq2seq_attn import train_model
    from seq2seq_attn.train.loop import Trainer

    run_dir, after_update = Path(task["run_dir"]), Trainer._check_machine
    shutil.rmtree(run_dir, ignore_errors=True)
    if clock.last is not None:
        shutil.copytree(clock.last, run_dir)

    def save(trainer: Trainer, folder: Path) -> None:
        trainer._save()
        average = trainer.updater.average
        with average.swapped_in() if average else nullcontext():
            trainer.run.save_best(trainer.updater.model.state_dict(), {"update": trainer.state.update})
        shutil.copytree(run_dir, folder, dirs_exist_ok=True)

    def check(trainer: Trainer) -> None:
        after_update(trainer)
        clock.check(partial(save, trainer))

    with mock.patch.object(Trainer, "_check_machine", check):
        train_model(task["config"], task["settings"], run_dir=run_dir, resume=clock.last is not None)
    clock.keep(lambda folder: shutil.copytree(run_dir, folder, dirs_exist_ok=True))


def train_tutorial(clock: Clock, task: dict[str, Any]) -> None:
    """The loop of the tutorial's notebook."""
    from scripts.laboratory.benchmarks.tutorial import train

    clock.keep(train(task["settings"], clock.last, clock.check))


def train_joeynmt(clock: Clock, task: dict[str, Any]) -> None:
    """`python -m joeynmt train`."""
    from joeynmt.__main__ import main
    from joeynmt.training import TrainManager

    train_step = TrainManager._train_step

    def save(manager: Any, folder: Path) -> None:
        manager._save_checkpoint(False, math.nan)
        os.link(manager.model_dir / f"{manager.stats.steps}.ckpt", folder / "model")

    def check(manager: Any, batch: Any) -> Any:
        clock.check(partial(save, manager))
        return train_step(manager, batch)

    TrainManager._train_step = check
    sys.argv[1:] = ["train", task["config"], "--skip-test"]
    main()


def train_opennmt(clock: Clock, task: dict[str, Any]) -> None:
    """`onmt_train`."""
    from onmt.bin.train import main
    from onmt.trainer import Trainer

    update = Trainer._gradient_accumulation

    def save(trainer: Any, folder: Path) -> None:
        saver, step = trainer.model_saver, trainer.optim.training_step
        saver.save(step)
        os.rename(f"{saver.base_path}_step_{step}.pt", folder / "model")

    def check(trainer: Any, *batches: Any) -> None:
        update(trainer, *batches)
        clock.check(partial(save, trainer))

    Trainer._gradient_accumulation = check
    start = [] if clock.last is None else ["-train_from", str(clock.last / "model")]
    sys.argv[1:] = ["-config", task["config"], *start]
    main()


TRAINERS = {"ours": train_ours, "tutorial": train_tutorial, "joeynmt": train_joeynmt, "opennmt": train_opennmt}
ENDING = ("ours", "tutorial")
"""trainers that may make all their epochs before the last mark; a peer that returns was interrupted"""

if __name__ == "__main__":
    _task = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    _clock = Clock(Path(_task["folder"]), _task["minutes"])
    if _clock.is_running:
        TRAINERS[_task["trainer"]](_clock, _task)
        if _task["trainer"] not in ENDING:
            sys.exit(f"{_task['trainer']}: ended before its last checkpoint")
    _clock.finish()
