"""Training runs: the command that trains them, whether they are finished, how they were trained,
their settings.

Of the package, this uses the command `seq2seq` and the configuration.
"""

import logging
import os
import re
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from scripts.laboratory.harness.records import (
    Record,
    read_events,
    read_training,
    set_arguments,
    short_commit,
)
from seq2seq_attn.config import Config, load_config
from seq2seq_attn.errors import UsageError, UserError
from seq2seq_attn.files import read_json

SEQ2SEQ = (sys.executable, "-m", "seq2seq_attn")
MAY_DIFFER = {"name", "data.data_dir", "data.source_dir", "data.num_processes", "train.precision"}
MAY_DIFFER |= {"search.max_length_ratio"}  # training chooses a value
"""settings that do not make a finished run another one than the planned one"""
NOT_COMPARED = MAY_DIFFER | {
    "seed",
    "train.device",
    "train.num_threads",
    "train.cuda_graphs",
    "train.log_every_updates",
    "train.checkpoint_every_updates",
    "train.validation.num_samples",
    "search.batch_size",
    "search.beam_size",
}
"""in comparisons of runs with records: also seeds, and what the machine or the laboratory sets"""

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Run:
    """A run of `seq2seq train` on one thread, planned or trained."""

    path: Path
    configs: tuple[str, ...]
    settings: Mapping[str, Any] = field(default_factory=dict)
    seed: int = 1

    @property
    def arguments(self) -> list[str]:
        """The configuration as arguments of `seq2seq train` and `seq2seq prepare`."""
        arguments = []
        for config in self.configs:
            arguments += ["-c", config]
        return arguments + set_arguments(self._all_settings)

    @property
    def config(self) -> Config:
        """All settings, as planned."""
        return load_config(self.configs, self._all_settings)

    @property
    def _all_settings(self) -> Record:
        return {"seed": self.seed, **self.settings, "train.num_threads": 1}

    @property
    def log_path(self) -> Path:
        """The output of training, beside the run directory."""
        return self.path.with_name(f"{self.path.name}.log")

    def is_finished(self) -> bool:
        """Whether the run was trained to its end.

        Raises:
            UsageError: it was started with other settings.
        """
        config_path = self.path / "config.yaml"
        if not config_path.is_file():
            return False
        trained = load_config([str(config_path)])
        changed = trained.changes_to(self.config).keys() - MAY_DIFFER
        if changed:
            raise UsageError(
                f"{self.path}: trained with other values of {', '.join(sorted(changed))}; remove "
                "the run"
            )
        return (self.path / "finished.json").is_file()


def train_all(runs: Sequence[Run], jobs: int) -> None:
    """Train the unfinished runs, `jobs` at a time; an interrupted run continues where it stopped.

    Raises:
        UsageError: a run was started with other settings.
        UserError: data cannot be prepared, or training failed.
    """
    waiting = [run for run in runs if not run.is_finished()]
    log.info(
        "runs: %d, finished before: %d; %d at a time, one thread each",
        len(runs),
        len(runs) - len(waiting),
        jobs,
    )
    corpora = (
        {run.config.data.model_dump_json(): run for run in waiting} if len(waiting) > 1 else {}
    )
    for run in corpora.values():  # each once, before processes that would do it at the same time
        if subprocess.run(
            [*SEQ2SEQ, "prepare", *run.arguments], stdout=subprocess.DEVNULL
        ).returncode:
            raise UserError(f"{run.path}: its data cannot be prepared")
    with ThreadPoolExecutor(max(1, jobs)) as pool:
        trainings = [pool.submit(_train, run) for run in waiting]
        try:
            failed = []
            for run, training in zip(waiting, trainings, strict=True):
                if not training.result():
                    failed.append(str(run.log_path))
        except KeyboardInterrupt:  # Ctrl-C reaches the trainings too, which save their state
            pool.shutdown(cancel_futures=True)
            raise
    if failed:
        raise UserError(f"training failed, see {', '.join(failed)}")


def _train(run: Run) -> bool:
    """Train a run; whether it succeeded."""
    run.path.parent.mkdir(parents=True, exist_ok=True)
    command = [*SEQ2SEQ, "train", *run.arguments, "--run-dir", str(run.path), "--resume"]
    began_at = time.monotonic()
    with run.log_path.open("ab") as file:
        environment = {**os.environ, "OMP_NUM_THREADS": "1"}
        code = subprocess.run(
            command, stdin=subprocess.DEVNULL, stdout=file, stderr=file, env=environment
        ).returncode
    minutes = (time.monotonic() - began_at) / 60
    outcome = f"failed with exit code {code}, see {run.log_path}"
    if not code:
        outcome = f"validation BLEU {best_validation(run.path)['bleu']:.1f}, {minutes:.1f} minutes"
    log.info("%s: %s", run.path.name, outcome)
    return not code


def best_validation(path: Path) -> Record:
    """The event of `metrics.jsonl` in which a run's best model was validated.

    Raises:
        UserError: the run has no best model yet.
    """
    best = [
        event for event in read_events(path) if event["event"] == "validation" and event["is_best"]
    ]
    if not best:
        raise UserError(f"{path}: no best model yet; train the run first")
    return best[-1]


def describe_run(path: Path) -> Record:
    """How a run was trained, earlier stages included, where, and how well its best model
    validated."""
    environment = read_json(path / "environment.json")
    trained = read_training(path)
    best = best_validation(path)
    return {
        "validation_bleu": round(float(best["bleu"]), 2),
        "validation_perplexity": round(float(best["perplexity"]), 3),
        "parameters": trained["num_parameters"],
        "precision": trained["precision"],
        "updates": trained["update"],
        "minutes": round(trained["minutes"] + minutes_before(path), 1),
        "commit": short_commit(environment),
        "is_dirty": (environment.get("git") or {}).get("is_dirty"),
        "hardware": environment.get("device_name"),
        "torch": environment.get("packages", {}).get("torch"),
        "trained_at": environment.get("written_at"),
    }


def minutes_before(path: Path) -> float:
    """The minutes of the runs that a run starts from, one after the other."""
    start = load_config([str(path / "config.yaml")]).train.start_from
    return 0.0 if start is None else float(read_training(start)["minutes"]) + minutes_before(start)


def settings_of(config: Config) -> Record:
    """The settings by which runs are compared. Extra texts are compared by file name, and runs that
    training starts from by the names of their directories without the seed (`-s1`)."""
    settings = {key: value for key, value in config.flat().items() if key not in NOT_COMPARED}
    names = [spec if isinstance(spec, str) else spec[0] for spec in settings.get("data.extra", [])]
    if start := settings["train.start_from"]:
        settings["train.start_from"] = re.sub(r"-s\d+$", "", Path(start).name)
    return {**settings, "data.extra": [Path(name).name for name in names]}


def difference(base: Record, settings: Record) -> Record:
    """The settings that differ, as the second has them; None for those that it lacks."""
    return {
        key: settings.get(key)
        for key in dict.fromkeys([*base, *settings])
        if base.get(key) != settings.get(key)
    }


def changed_settings(recorded: Record, config: Config) -> list[str]:
    """The keys whose values in a configuration are not those of a record. A key that the record
    lacks has its default."""
    defaults = settings_of(load_config(["base"]))
    settings = settings_of(config).items()
    return [key for key, value in settings if recorded.get(key, defaults.get(key)) != value]
