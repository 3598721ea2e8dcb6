"""The results of an experiment: its finished runs, the baseline's first, and their scores."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import seq2seq_attn
from scripts.laboratory.experiment import Experiment
from scripts.laboratory.harness.records import ROOT, Record, describe
from scripts.laboratory.harness.runs import Run

if TYPE_CHECKING:
    from seq2seq_attn.report.pages import Report


@dataclass(frozen=True)
class Results:
    """The finished runs of an experiment, the baseline's first, and their scores."""

    experiment: Experiment
    runs: list[tuple[str, Run]]

    @property
    def path(self) -> Path:
        """Where the record goes."""
        return ROOT / self.experiment.record

    @property
    def runs_by_arm(self) -> dict[str, list[Run]]:
        """The runs of each arm, in the order of their seeds."""
        arms: dict[str, list[Run]] = {}
        for arm, run in self.runs:
            arms.setdefault(arm, []).append(run)
        return arms

    @cached_property
    def report(self) -> Report:
        """The evaluation of all runs together."""
        return self.evaluate([run for _, run in self.runs], "report")

    def evaluate(self, runs: Sequence[Run], name: str, **options: Any) -> Report:
        """The evaluation of some runs, with the options of the experiment, as `NAME.json` in its folder."""
        path = self.experiment.directory / f"{name}.json"
        options = {"reuse_hypotheses": True, **self.experiment.evaluate, **options}
        return seq2seq_attn.evaluate([run.path for run in runs], json=path, **options)

    def header(self) -> Record:
        """The question's data, settings and seeds, for records of systems."""
        return {
            "what": self.experiment.about,
            "chosen_on": self.experiment.chosen_on,
            "config": self.experiment.configs[0],
            "set": [setting for setting in self.runs[0][1].settings if not setting.startswith("data.")],
            "num_seeds": max(len(runs) for runs in self.runs_by_arm.values()),
            "seed": self.runs[0][1].seed,
            "environment": describe("scripts/lab"),
        }
