"""Train several runs in parallel, each in its own process with one thread, for `seq2seq compare` and scripts.

Finished runs are kept and interrupted runs resumed, so the same call continues where it was stopped.
"""

from __future__ import annotations

import ctypes
import logging
import os
import signal
import subprocess
import sys
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from seq2seq_attn.config import Config, load_config
from seq2seq_attn.data.prepare import prepare_corpus
from seq2seq_attn.data.store import PreparedCorpus
from seq2seq_attn.errors import UsageError, UserError
from seq2seq_attn.evaluation.names import trained_settings
from seq2seq_attn.metrics.table import METRICS
from seq2seq_attn.run_dir import RunDir

ONE_THREAD = "train.num_threads=1"
"""a setting of every planned run, recorded because the last bits of sums depend on the number of threads"""
_POLL_S = 0.1
_PR_SET_PDEATHSIG = 1
"""of Linux's prctl"""

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class PlannedRun:
    """A run to be trained."""

    run: RunDir
    config: Config
    arguments: tuple[str, ...]
    """the arguments of `seq2seq train` for this configuration"""

    @classmethod
    def of(
        cls, run: RunDir, config_names: Sequence[str], overrides: Sequence[str], imports: Sequence[str] = ()
    ) -> PlannedRun:
        """The run of `seq2seq train -c CONFIG... --set OVERRIDE... --import MODULE...`, with one thread.

        Raises:
            UsageError: as `load_config`.
        """
        settings = [*overrides, ONE_THREAD]
        repeated = {"-c": config_names, "--set": settings, "--import": imports}
        arguments = [word for option, values in repeated.items() for value in values for word in (option, value)]
        return cls(run, load_config(config_names, settings), tuple(arguments))

    @property
    def log_path(self) -> Path:
        """The training process's output, next to the run directory."""
        return self.run.path.with_name(f"{self.run.path.name}.log")

    def check_settings(self) -> None:
        """Raises UsageError if the run exists but was started with other settings."""
        if not self.run.config_path.is_file():
            return
        for key, (there, planned) in different_settings(self.run.config(), self.config).items():
            raise UsageError(
                f"{self.run.path}: trained with {key}={there!r}, not {planned!r}; remove it, or write elsewhere"
            )

    def check_corpus(self, prepared: PreparedCorpus) -> None:
        """Check that a finished run was trained on this corpus. The resume of an interrupted run checks that itself.

        Raises:
            UserError: it was trained on another corpus.
        """
        if not self.run.is_finished():
            return
        if self.run.text_hashes()["content"] != prepared.text_hashes()["content"]:
            raise UserError(
                f"{self.run.path}: trained on another corpus (the text or the version of a tokenizer has changed "
                "since); choose another --output, or remove this run"
            )


def prepare_corpora(planned: Sequence[PlannedRun], *, show_progress: bool = False) -> None:
    """Prepare each corpus once, not in each process, and check that the finished runs were trained on it.

    Raises:
        UsageError, UserError: as `prepare_corpus`, or a finished run was trained on another corpus.
    """
    corpora: dict[str, PreparedCorpus] = {}
    for planned_run in planned:
        data = planned_run.config.data.model_dump_json()
        if data not in corpora:
            corpora[data] = prepare_corpus(planned_run.config, show_progress=show_progress)
        planned_run.check_corpus(corpora[data])


def different_settings(there: Config, planned: Config) -> dict[str, tuple[Any, Any]]:
    """The settings, including the seed, in which a run differs from the plan: maps each key to both values."""
    values = [{**trained_settings(config), "seed": config.seed} for config in (there, planned)]
    if planned.search.max_length_ratio is None:  # the run holds the value that training chose
        for settings in values:
            settings.pop("search.max_length_ratio", None)
    keys = dict.fromkeys(key for settings in values for key in settings)
    pairs = {key: (values[0].get(key), values[1].get(key)) for key in keys}
    return {key: pair for key, pair in pairs.items() if pair[0] != pair[1]}


def train_runs(planned: Sequence[PlannedRun], *, at_once: int) -> list[PlannedRun]:
    """Train all unfinished runs, `at_once` in parallel. Returns the runs that failed. A failure does not stop the
    others; a signal stops all runs, after they have saved their state."""
    waiting = deque(planned_run for planned_run in planned if not planned_run.run.is_finished())
    num_runs, num_ended = len(planned), len(planned) - len(waiting)
    log.info("runs: %d, finished before: %d; %d at a time, one thread each", num_runs, num_ended, at_once)
    running: dict[subprocess.Popen[bytes], tuple[PlannedRun, float]] = {}
    failed = []
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
                outcome = _describe_outcome(planned_run, process.returncode, time.monotonic() - began_at)
                log.info("%d of %d: %s: %s", num_ended, num_runs, planned_run.run.path.name, outcome)
            time.sleep(_POLL_S)
    finally:
        _stop(list(running))
    return failed


def _start(planned: PlannedRun) -> subprocess.Popen[bytes]:
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
            preexec_fn=_end_with_parent if sys.platform == "linux" else None,
        )


def _end_with_parent() -> None:
    """Let the system signal this process when its parent is killed, so that it saves its state and stops."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)


def _stop(processes: Sequence[subprocess.Popen[bytes]]) -> None:
    if processes:
        log.info("stopping training (%d); the state is saved, and the same command resumes it", len(processes))
    for process in processes:
        process.terminate()
    for process in processes:
        process.wait()


def _describe_outcome(planned: PlannedRun, code: int, seconds: float) -> str:
    if code == 0:
        metric = planned.config.train.validation.metric
        score = planned.run.load_best().values[metric]
        title = METRICS[metric].title if metric in METRICS else metric
        return f"validation {title} {score:.1f}, {seconds / 60:.1f} minutes"
    lines = planned.log_path.read_text(encoding="utf-8", errors="replace").split("\n")
    last = next((line.strip() for line in reversed(lines) if line.strip()), "no output")
    return f"failed with exit code {code}, log in {planned.log_path}: {last}"
