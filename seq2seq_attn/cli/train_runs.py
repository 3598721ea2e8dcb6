"""Train several runs in parallel, each in its own process with one thread.

Finished runs are kept and interrupted runs resumed, so the same call continues where it was stopped.
"""

import ctypes
import logging
import os
import signal
import subprocess
import sys
import time
from collections import deque
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from seq2seq_attn.config import Config
from seq2seq_attn.metrics.table import METRICS
from seq2seq_attn.run_dir import RunDir

_POLL_S = 0.1
_PR_SET_PDEATHSIG = 1
"""of Linux's prctl"""

log = logging.getLogger(__name__)


class PlannedRun(NamedTuple):
    """A run to be trained."""

    run: RunDir
    config: Config
    arguments: tuple[str, ...]
    """the arguments of `seq2seq train` for this configuration"""

    @property
    def log_path(self) -> Path:
        """The training process's output, next to the run directory."""
        return self.run.path.with_name(f"{self.run.path.name}.log")


def train_runs(planned: Sequence[PlannedRun], *, at_once: int) -> list[PlannedRun]:
    """Train all unfinished runs, `at_once` in parallel. Returns the runs that failed. A failure does not stop the
    others; a signal stops all runs, after they have saved their state."""
    waiting = deque(planned_run for planned_run in planned if not planned_run.run.is_finished())
    num_runs, num_ended = len(planned), len(planned) - len(waiting)
    log.info("runs: %d, finished before: %d; %d at a time, one thread each", num_runs, num_ended, at_once)
    running: dict[subprocess.Popen[bytes], tuple[PlannedRun, float]] = {}
    failed, durations_s = [], list[float]()
    try:
        while waiting or running:
            while waiting and len(running) < at_once:
                planned_run = waiting.popleft()
                running[_start(planned_run)] = planned_run, time.monotonic()
            for process in [process for process in running if process.poll() is not None]:
                planned_run, began_at = running.pop(process)
                num_ended += 1
                if process.returncode:
                    failed.append(planned_run)
                ended_at = time.monotonic()
                durations_s.append(ended_at - began_at)
                outcome = _describe_outcome(planned_run, process.returncode, durations_s[-1])
                mean_s = sum(durations_s) / len(durations_s)
                left_s = [mean_s] * len(waiting)
                left_s += [max(0.0, mean_s - (ended_at - other_began_at)) for _, other_began_at in running.values()]
                left = f"; about {sum(left_s) / at_once / 60:.1f} minutes left" if left_s else ""
                log.info("%d of %d: %s: %s%s", num_ended, num_runs, planned_run.run.path.name, outcome, left)
            time.sleep(_POLL_S)
    finally:
        if running:
            log.info("stopping training (%d); the state is saved, and the same command resumes it", len(running))
        for process in running:
            process.terminate()
        for process in running:
            process.wait()
    return failed


def _start(planned: PlannedRun) -> subprocess.Popen[bytes]:
    def end_with_parent() -> None:
        """Let the system signal this process when its parent is killed, so that it saves its state and stops."""
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)

    # `python -m` looks for modules in the current folder, the installed command does not
    isolation = [] if str(Path.cwd()) in sys.path else ["-P"]
    command = [sys.executable, *isolation, "-m", "seq2seq_attn", "train", *planned.arguments]
    planned.log_path.parent.mkdir(parents=True, exist_ok=True)
    with planned.log_path.open("ab") as file:
        return subprocess.Popen(
            [*command, "--run-dir", str(planned.run.path), "--resume"],
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=file,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
            start_new_session=True,  # Ctrl-C reaches this process alone, which stops the others
            preexec_fn=end_with_parent if sys.platform == "linux" else None,
        )


def _describe_outcome(planned: PlannedRun, code: int, seconds: float) -> str:
    if code == 0:
        metric = planned.config.train.validation.metric
        score = planned.run.load_best().values[metric]
        title = METRICS[metric].title if metric in METRICS else metric
        return f"validation {title} {score:.1f}, {seconds / 60:.1f} minutes"
    lines = planned.log_path.read_text(encoding="utf-8", errors="replace").split("\n")
    last = next((line.strip() for line in reversed(lines) if line.strip()), "no output")
    return f"failed with exit code {code}, log in {planned.log_path}: {last}"
