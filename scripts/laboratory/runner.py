"""Run an experiment: make its text, train the runs that are missing, score all that are finished,
write the record."""

import logging
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from scripts.laboratory.experiment import Experiment
from scripts.laboratory.harness.runs import train_all
from scripts.laboratory.schemas import SCHEMAS
from seq2seq_attn.errors import UserError
from seq2seq_attn.files import write_json

log = logging.getLogger(__name__)


def run_experiment(
    experiment: Experiment, *, only: Sequence[str], seeds: Sequence[int], jobs: int
) -> list[Path]:
    """Train the missing runs of some arms, then score every finished run of the experiment, so that
    a record loses none. Returns the records.

    Raises:
        UsageError: a run was trained with other settings.
        UserError: a command failed, or the baseline has no finished run.
    """
    write_texts(experiment.texts, experiment.directory)
    for arms in stages(experiment, only):
        for arm in arms:
            write_texts(experiment.arms[arm].texts, experiment.directory)
        # seed after seed, so that an interrupted experiment has whole seeds
        train_all([experiment.run(arm, seed) for seed in seeds for arm in arms], jobs)
    results = experiment.results()
    written = []
    for path, record in SCHEMAS[experiment.writes](results):
        path.parent.mkdir(parents=True, exist_ok=True)
        write_json(path, record)
        written.append(path)
    return written


def stages(experiment: Experiment, arms: Sequence[str]) -> list[list[str]]:
    """The arms that are trained side by side. One with text of its own waits for the arms before
    it, whose translations the text may be; the arms after it wait for it, as they may continue its
    runs."""
    grouped: list[list[str]] = [[]]
    for arm in arms:
        if experiment.arms[arm].texts:
            grouped += [[arm], []]
        else:
            grouped[-1].append(arm)
    return [stage for stage in grouped if stage]


def write_texts(commands: Sequence[str], directory: Path) -> None:
    """Run commands that write text, each once."""
    for command in commands:
        done = directory / "texts.done"
        known = done.read_text(encoding="utf-8").splitlines() if done.exists() else []
        if command not in known:
            directory.mkdir(parents=True, exist_ok=True)
            shell(command)
            done.write_text("".join(f"{line}\n" for line in [*known, command]), encoding="utf-8")


def shell(command: str) -> None:
    """Run a command of an experiment, with the `seq2seq` and the `python` of this environment.

    Raises:
        UserError: it failed.
    """
    log.info("%s", command)
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    done = subprocess.run(
        ["bash", "-euc", f"set -o pipefail; {command}"], env={**os.environ, "PATH": path}
    )
    if done.returncode:
        raise UserError(f"{command}: exit code {done.returncode}")
