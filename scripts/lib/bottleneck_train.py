"""Trains what the bottleneck experiment needs, several runs at a time; finished runs are kept, others resumed."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from bottleneck_plan import Training

FREE = {"num_threads", "device"}
"""settings of `train` that do not decide what a run learns; nor do its name and how it is to search"""


def train_all(trainings: Sequence[Training], jobs: int) -> None:
    """Train what is not finished, `jobs` at a time, each on one thread."""
    todo = [one for one in trainings if not is_finished(one)]
    print(f"{len(trainings)} trainings, {len(trainings) - len(todo)} of them finished", file=sys.stderr)
    with ThreadPoolExecutor(jobs) as pool:
        failed = [path for path in pool.map(_train, todo) if path]
    if failed:
        raise SystemExit(f"failed, see the logs: {', '.join(failed)}")


def is_finished(training: Training) -> bool:
    """Whether the run is there and finished; exits if it is another one than planned."""
    run = training.run
    if not run.is_finished():
        return False
    if _what_counts(training.config.model_dump(mode="json")) != _what_counts(run.config().model_dump(mode="json")):
        raise SystemExit(f"{run.path}: finished with other settings than planned; move it away to train it again")
    return True


def _what_counts(config: dict) -> dict:
    train = {key: value for key, value in config["train"].items() if key not in FREE}
    return {**config, "train": train, "name": None, "search": None}


def _train(training: Training) -> str | None:
    path = training.run.path
    path.parent.mkdir(parents=True, exist_ok=True)
    log_path = path.with_name(f"{path.name}.log")
    command = [sys.executable, "-m", "seq2seq_attn", "train", "-c", f"bottleneck/{training.inputs}"]
    settings = [*training.settings, "train.num_threads=1"]
    command += [argument for setting in settings for argument in ("--set", setting)]
    command += ["--seed", str(training.seed), "--run-dir", str(path), *(["--resume"] if path.exists() else [])]
    print(f"{path}: training, log in {log_path}", file=sys.stderr, flush=True)
    with log_path.open("a", encoding="utf-8") as log:
        code = subprocess.run(command, stdout=log, stderr=log, env={**os.environ, "OMP_NUM_THREADS": "1"}).returncode
    return str(log_path) if code else None
