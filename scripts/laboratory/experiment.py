"""Experiments: the question, the runs that answer it, how they are scored, and where the record
goes.

An experiment is a file of `experiments/`. In its texts `$dir` is its folder under `runs/lab`. In
settings, `$seed` is the seed of a run.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING, Any, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

import seq2seq_attn
from scripts.laboratory.harness.records import ROOT
from scripts.laboratory.harness.runs import Run
from seq2seq_attn.errors import UsageError, UserError

if TYPE_CHECKING:
    from seq2seq_attn.report.pages import Report

FOLDER = Path(__file__).parent / "experiments"
RUNS = Path("runs/lab")
ChosenOn = Literal["", "validation", "published elsewhere"]
Schema = Literal["evaluation", "levers", "mechanisms", "points"]


class Arm(BaseModel):
    """Runs that differ in their seed alone: overlays and settings over those of the experiment."""

    model_config = ConfigDict(extra="forbid")

    about: str = ""
    configs: list[str] = []
    set: dict[str, Any] = {}
    texts: list[str] = []
    """commands that write the text of this arm, once the arms before it are trained"""
    is_scored: bool = True
    """False: its runs only make texts or weights for other arms"""
    is_published: bool = False
    """whether the test sets are scored too, which needs `chosen_on`"""
    record: str = ""
    """a file of `docs/`, if each arm has a record; default: `NAME.json` in the folder `record` of
    the experiment"""
    without: str = ""
    """the technique of the recipe that it lacks: it is a row of the ablation"""


class Experiment(BaseModel):
    """A question, and what it takes to answer it."""

    model_config = ConfigDict(extra="forbid")

    name: str
    question: str
    configs: list[str] = []
    """configurations under those of every arm"""
    set: dict[str, Any] = {}
    texts: list[str] = []
    """commands that write text, run before training"""
    arms: dict[str, Arm] = {}
    axes: list[str] = []
    """folders of `configs/`: each file is an arm, named `folder/file`"""
    leave_out: list[str] = []
    """files of these folders that are no arms"""
    baseline: str = ""
    """the arm that the others are compared with; default: the first"""
    seeds: str = "1"
    evaluate: dict[str, Any] = {}
    """arguments of `seq2seq_attn.evaluate`"""
    chosen_on: ChosenOn = ""
    """the data that the settings of the arms were chosen on"""
    writes: Schema = Field(alias="schema")
    """the form of its record (`schemas.py`)"""
    record: str
    """a file of `docs/`; for `levers` and `mechanisms` a folder with a record per arm"""
    page: str
    trial: dict[str, Any] = {}
    """settings over those of every arm, for a trial"""

    @property
    def directory(self) -> Path:
        return RUNS / self.name

    @model_validator(mode="after")
    def _check(self) -> Experiment:
        if any(arm.is_published for arm in self.arms.values()) and not self.chosen_on:
            raise ValueError(
                "is_published: test sets are for settings that were chosen before; say chosen_on"
            )
        return self

    def run(self, arm: str, seed: int) -> Run:
        path = self.directory / f"{stem(arm)}-s{seed}"
        configs = (*self.configs, *self.arms[arm].configs)
        settings = json.dumps({**self.set, **self.arms[arm].set, **self.trial})
        text = Template(settings).safe_substitute(seed=seed)
        return Run(path, configs, json.loads(text), seed)

    def arm_path(self, arm: str) -> Path:
        """Where the record of an arm goes, if each arm has one; in a trial, to the folder of the
        trial's runs."""
        own = "" if self.trial else self.arms[arm].record
        return ROOT / (own or f"{self.record}/{stem(arm)}.json")

    def results(self) -> Results:
        """The finished runs of the scored arms, the baseline's first, whatever seeds were asked
        for.

        Raises:
            UserError: the baseline has none.
        """
        runs: dict[str, list[Run]] = {}
        scored = [arm for arm in self.arms if self.arms[arm].is_scored]
        for arm in sorted(scored, key=lambda arm: arm != self.baseline):
            seeds = []
            for path in self.directory.glob(f"{stem(arm)}-s*/"):
                name, _, seed = path.name.rpartition("-s")
                if name == stem(arm) and seed.isdigit():
                    seeds.append(int(seed))
            finished = [
                run for run in (self.run(arm, seed) for seed in sorted(seeds)) if run.is_finished()
            ]
            if finished:
                runs[arm] = finished
        if self.baseline not in runs:
            raise UserError(
                f"{self.name}: no finished run of `{self.baseline}` in {self.directory}"
            )
        return Results(self, runs)


@dataclass(frozen=True)
class Results:
    """The finished runs of an experiment by arm, the baseline's first and each arm's by seed, and
    their scores."""

    experiment: Experiment
    runs_by_arm: dict[str, list[Run]]

    @property
    def path(self) -> Path:
        return ROOT / self.experiment.record

    @cached_property
    def report(self) -> Report:
        return self.evaluate([*chain(*self.runs_by_arm.values())], "report")

    def evaluate(self, runs: Sequence[Run], name: str, **options: Any) -> Report:
        """The evaluation of some runs, with the options of the experiment, as `NAME.json` in its
        folder."""
        path = self.experiment.directory / f"{name}.json"
        options = {"reuse_hypotheses": True, **self.experiment.evaluate, **options}
        return seq2seq_attn.evaluate([run.path for run in runs], json=path, **options)


def stem(arm: str) -> str:
    """An arm's name as part of a file's name."""
    return arm.replace("/", "-")


def names() -> list[str]:
    return sorted(path.stem for path in FOLDER.glob("*.yaml"))


def load_experiment(name: str, settings: Mapping[str, Any] | None = None) -> Experiment:
    """An experiment. With `settings` for all arms it is a trial: in a folder of its own, with its
    record there.

    Raises:
        UsageError: there is no such experiment, or its file is not valid.
    """
    if name not in names():
        raise UsageError(f"{name}: no such experiment; there are {', '.join(names())}")
    values = _read_yaml(name)
    parent = values.pop("extends", None)
    if parent is not None:
        values = _read_yaml(parent) | values
    trial = f"{name}-trial" if settings else name
    text = Template(yaml.safe_dump(values, sort_keys=False)).safe_substitute(dir=RUNS / trial)
    try:
        experiment = Experiment(name=trial, **yaml.safe_load(text))
    except (ValidationError, TypeError) as error:
        raise UsageError(f"{FOLDER / name}.yaml: {error}") from None
    if settings:
        record = experiment.directory.resolve() / f"record{Path(experiment.record).suffix}"
        experiment = experiment.model_copy(update={"record": str(record), "trial": settings})
    for axis in experiment.axes:
        for path in sorted((ROOT / "configs" / axis).glob("*.yaml")):
            overlay = f"{axis}/{path.stem}"
            if overlay not in experiment.leave_out:
                experiment.arms[overlay] = Arm(configs=[overlay])
    experiment.baseline = experiment.baseline or next(iter(experiment.arms))
    return experiment


def _read_yaml(name: str) -> dict[str, Any]:
    values: dict[str, Any] = yaml.safe_load((FOLDER / f"{name}.yaml").read_text(encoding="utf-8"))
    return values


def parse_seeds(text: str) -> list[int]:
    """The numbers of `2` or `1-3`.

    Raises:
        UsageError: the text has another form.
    """
    match = re.fullmatch(r"(\d+)(?:-(\d+))?", text)
    seeds = range(int(match[1]), int(match[2] or match[1]) + 1) if match else range(0)
    if not seeds:
        raise UsageError(f"--seeds {text}: expected a number or an ascending range such as 1-3")
    return list(seeds)
