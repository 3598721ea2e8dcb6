"""Trains a system of the race under a clock, which keeps its checkpoints.

This runs in the environment of the system, so it imports only the standard library before it knows
the trainer. The clock counts updates: their number times the system's pace, the CPU seconds of an
update on a quiet machine. So the race itself may run beside other work, and what is done between
updates takes no time.
"""

import json
import math
import os
import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any
from unittest import mock

FINISHED = "finished"
"""a file beside the checkpoints, once the last is kept"""
MINUTES = "minutes.json"
"""a file of a checkpoint: the minutes of the clock"""
WARM_UP = 10
"""updates that the pace leaves out"""
Save = Callable[[Path], object]


def checkpoints(folder: Path) -> list[Path]:
    """The folders of the checkpoints by number of updates, which are their names."""
    kept = [path for path in folder.glob("*") if path.name.isdigit()]
    return sorted(kept, key=lambda path: int(path.name))


def read_json(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


def minutes_after(updates: int, pace: Mapping[str, float]) -> float:
    """The time of the clock. `pace`: `start_s` until the first update, then `update_s` for each."""
    return (pace["start_s"] + updates * pace["update_s"]) / 60


def cpu_seconds() -> float:
    """User and system time of this process and of the children that it has waited for."""
    return sum(os.times()[:4])


class Clock:
    """Keeps a checkpoint when training reaches each of the given minutes."""

    def __init__(self, folder: Path, minutes: Sequence[float], pace: Mapping[str, float]) -> None:
        self._folder = folder
        self._marks = list(minutes)
        self._pace = pace
        self._updates = 0
        self._parent = os.getppid()

    @property
    def minutes(self) -> float:
        return minutes_after(self._updates, self._pace)

    def check(self, save: Save) -> None:
        """After an update: keep a checkpoint if one is due, and end the process after the last.
        `save` writes one into a folder. A process whose parent is gone ends, since the race may be
        running again."""
        self._updates += 1
        if os.getppid() != self._parent:
            os._exit(1)
        if self.minutes >= self._marks[0]:
            self.keep(save)
            if not self._marks:
                self.finish()

    def keep(self, save: Save) -> None:
        """Write a checkpoint."""
        unfinished = self._folder / ".unfinished"
        shutil.rmtree(unfinished, ignore_errors=True)
        unfinished.mkdir(parents=True)
        save(unfinished)
        minutes = {"minutes": round(self.minutes, 2)}
        (unfinished / MINUTES).write_text(json.dumps(minutes), encoding="utf-8")
        unfinished.rename(self._folder / f"{self._updates}")
        self._marks = [mark for mark in self._marks if mark > self.minutes]

    def finish(self) -> None:
        """End the process: the last checkpoint is kept."""
        (self._folder / FINISHED).touch()
        os._exit(0)


class CpuClock(Clock):
    """Counts the CPU seconds of the process, without those of saving."""

    def __init__(self, folder: Path, minutes: Sequence[float]) -> None:
        super().__init__(folder, minutes, {})
        self._saving_s = 0.0

    @property
    def minutes(self) -> float:
        return (cpu_seconds() - self._saving_s) / 60

    def keep(self, save: Save) -> None:
        began_s = cpu_seconds()
        super().keep(save)
        self._saving_s += cpu_seconds() - began_s


class PaceMaker:
    """In place of a clock: measures the pace of a system, and ends the process after some
    seconds."""

    def __init__(self, path: Path, seconds: float) -> None:
        """`path`: where the pace is written."""
        self._path, self._seconds = path, seconds
        self._times: list[float] = []

    def check(self, save: Save) -> None:
        """After an update."""
        self._times.append(cpu_seconds())
        if len(self._times) > 2 * WARM_UP and self._times[-1] - self._times[0] >= self._seconds:
            self.keep(save)

    def keep(self, save: Save) -> None:
        """Write the pace, and end the process; training may end early."""
        start = min(WARM_UP, len(self._times) - 2)
        update_s = (self._times[-1] - self._times[start]) / (len(self._times) - 1 - start)
        self._path.write_text(
            json.dumps({"start_s": self._times[0], "update_s": update_s}), encoding="utf-8"
        )
        os._exit(0)


def train_ours(clock: Clock | PaceMaker, task: dict[str, Any]) -> None:
    """`seq2seq train`; it may end before the last mark. A checkpoint has the last state and the
    averaged weights of its minute, the last checkpoint has the best weights."""
    from seq2seq_attn import train_model
    from seq2seq_attn.run import Run
    from seq2seq_attn.train.loop import Trainer

    run_dir = Path(task["run_dir"])
    after_update = Trainer._give_back_memory
    shutil.rmtree(run_dir, ignore_errors=True)

    def copy(folder: Path) -> None:
        shutil.copytree(run_dir, folder, dirs_exist_ok=True)

    def save(trainer: Trainer, folder: Path) -> None:
        trainer._save()
        copy(folder)
        with trainer.updater.use_average():
            trainer.updater.save_best(Run(folder), {"update": trainer.state.update}, {})

    def check(trainer: Trainer) -> None:
        after_update(trainer)
        clock.check(partial(save, trainer))

    with mock.patch.object(Trainer, "_give_back_memory", check):
        train_model(**task["text"], run_dir=run_dir)
    clock.keep(copy)


def train_tutorial(clock: Clock | PaceMaker, task: dict[str, Any]) -> None:
    """The loop of the tutorial's notebook."""
    from scripts.laboratory.benchmarks.tutorial import train

    clock.keep(train(task["text"]["settings"], clock.check))


def train_joeynmt(clock: Clock | PaceMaker, task: dict[str, Any]) -> None:
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


def train_opennmt(clock: Clock | PaceMaker, task: dict[str, Any]) -> None:
    """`onmt_train`."""
    from onmt.bin.train import main
    from onmt.trainer import Trainer

    update = Trainer._gradient_accumulation

    def save(trainer: Any, folder: Path) -> None:
        saver = trainer.model_saver
        step = trainer.optim.training_step
        saver.save(step)
        os.rename(f"{saver.base_path}_step_{step}.pt", folder / "model")

    def check(trainer: Any, *batches: Any) -> None:
        update(trainer, *batches)
        clock.check(partial(save, trainer))

    Trainer._gradient_accumulation = check
    sys.argv[1:] = ["-config", task["config"]]
    main()


TRAINERS = {
    "ours": train_ours,
    "tutorial": train_tutorial,
    "joeynmt": train_joeynmt,
    "opennmt": train_opennmt,
}
ENDING = ("ours", "tutorial")
"""trainers that may make all their epochs before the last mark; a peer that returns was
interrupted"""

if __name__ == "__main__":
    _task = read_json(Path(sys.argv[1]))
    _train = TRAINERS[_task["trainer"]]
    if "pace_seconds" in _task:
        _train(PaceMaker(Path(_task["pace_path"]), _task["pace_seconds"]), _task)
        sys.exit("ended before its pace was known")
    _clock: Clock
    if "pace" in _task:
        _clock = Clock(Path(_task["folder"]), _task["minutes"], _task["pace"])
    else:
        _clock = CpuClock(Path(_task["folder"]), _task["minutes"])
    _train(_clock, _task)
    if _task["trainer"] not in ENDING:
        sys.exit(f"{_task['trainer']}: ended before its last checkpoint")
    _clock.finish()
