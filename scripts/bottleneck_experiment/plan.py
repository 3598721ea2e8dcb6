"""The trainings of the bottleneck experiment: arms, inputs, seeds, and run directories."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from seq2seq_attn.commands.train_runs import PlannedRun
from seq2seq_attn.config import Config
from seq2seq_attn.run_dir import RunDir

RUNS = Path("runs/bottleneck")
DROPOUTS = (0.2, 0.3)
"""the rates that each arm of Multi30k begins its search with"""
DROPOUT_STEP = 0.1
MOST_DROPOUT = 0.6
DROPOUT_KEYS = ("model.dropout.embedding", "model.dropout.encoder", "model.dropout.readout")


@dataclass(frozen=True)
class Arm:
    """One view of the source for the decoder. `settings` keep the number of parameters within 3 % of `additive`'s."""

    name: str
    settings: tuple[str, ...]
    about: str
    is_equal: bool = True
    """whether it is meant to have as many parameters as the others"""
    dropout_keys: tuple[str, ...] = DROPOUT_KEYS
    """settings that take a tuned rate of dropout"""


def _slots(k: int) -> Arm:
    options = f"model.attention={{name: slots, options: {{num_slots: {k}, attention_size: 96}}}}"
    return Arm(f"slots-{k}", (options, "model.hidden_size=152"), f"{k} pooled vector{'s' * (k > 1)}, attended to")


def _fixed(dropout: float) -> str:
    """The attention `fixed`, with the rate of the encoder's dropout on the summary."""
    return f"model.attention={{name: fixed, options: {{dropout: {dropout}}}}}"


CAPTIONS_ARMS = (
    Arm("additive", (), "all encoder states"),
    Arm("fixed", (_fixed(0.1), "model.hidden_size=176"), "the summary vector at every step"),
    _slots(1),
    _slots(2),
    _slots(4),
    _slots(8),
    _slots(16),
    Arm("initial", ("model.attention.name=initial", "model.hidden_size=240"), "its first state only"),
    Arm("uniform", ("model.attention.name=uniform", "model.hidden_size=176"), "the mean of the states"),
    Arm(
        "fixed-reversed",
        (
            _fixed(0.1),
            "model.encoder={name: reversed_gru, hidden_size: 176}",
            "model.hidden_size=168",
        ),
        "the summary of an encoder that reads the source from its end",
    ),
    Arm(
        "fixed-wide",
        (_fixed(0.1), "model.encoder.hidden_size=1024", "train.optimizer.learning_rate=0.001"),
        "a summary vector of 2,048 numbers (learning rate 0.001; at the others' 0.003 no seed learned)",
        is_equal=False,
    ),
)
CAPTIONS_INPUTS = ("joined", "single")
MULTI30K_ARMS = (
    Arm("additive", (), "all encoder states"),
    Arm(
        "fixed",
        ("model.attention.name=fixed", "model.hidden_size=560"),
        "the summary vector at every step",
        dropout_keys=(*DROPOUT_KEYS, "model.attention.options.dropout"),
    ),
)


@dataclass(frozen=True)
class Training:
    """One run of the plan."""

    inputs: str
    arm: Arm
    seed: int
    dropout: float | None = None

    @property
    def run(self) -> RunDir:
        """Its run directory."""
        rate = "" if self.dropout is None else f"-d{self.dropout:g}"
        return RunDir(RUNS / self.inputs / f"{self.arm.name}{rate}-s{self.seed}")

    @property
    def settings(self) -> list[str]:
        """The settings that differ from the configuration of its inputs."""
        rates = [] if self.dropout is None else [f"{key}={self.dropout}" for key in self.arm.dropout_keys]
        return [f"name=bottleneck-{self.inputs}-{self.arm.name}", *self.arm.settings, *rates]

    @property
    def config(self) -> Config:
        """All of its settings."""
        return self.planned.config

    @property
    def planned(self) -> PlannedRun:
        """How `seq2seq train` is called for it."""
        return PlannedRun.of(self.run, [f"bottleneck/{self.inputs}"], [*self.settings, f"seed={self.seed}"])

    @property
    def is_finished(self) -> bool:
        """Whether the run is there and finished.

        Raises:
            UsageError: it was trained with other settings than planned.
        """
        return self.planned.is_finished()


def captions_trainings(arms: Iterable[Arm], seeds: int) -> list[Training]:
    """Seed after seed, so that an interrupted experiment has whole seeds; the large arms last."""
    arms = list(arms)
    return [
        Training(inputs, arm, seed)
        for is_equal in (True, False)
        for inputs in CAPTIONS_INPUTS
        for seed in range(1, seeds + 1)
        for arm in arms
        if arm.is_equal == is_equal
    ]


def multi30k_tuning(arm: Arm) -> list[Training]:
    """The runs of the first seed that decide on an arm's dropout: first `DROPOUTS`, then the neighbors of the
    rate that validated best, until both are there. While they are not all finished, the search ends with them."""
    tuning = [Training("multi30k", arm, 1, rate) for rate in DROPOUTS]
    while all(one.run.is_finished() for one in tuning):
        tried = [one.dropout for one in tuning]
        best = best_dropout(tuning)
        beside = [round(best + step, 1) for step in (-DROPOUT_STEP, DROPOUT_STEP)]
        missing = [rate for rate in beside if rate not in tried and 0 <= rate <= MOST_DROPOUT]
        if not missing:
            break
        tuning += [Training("multi30k", arm, 1, rate) for rate in missing]
    return tuning


def multi30k_trainings(arms: Iterable[Arm], seeds: int) -> list[Training]:
    """Every seed of every arm at the rate that the search has found best so far."""
    chosen = {arm: best_dropout([one for one in multi30k_tuning(arm) if one.run.is_finished()]) for arm in arms}
    return [Training("multi30k", arm, seed, rate) for seed in range(1, seeds + 1) for arm, rate in chosen.items()]


def best_dropout(tuning: Sequence[Training]) -> float:
    """The rate of the training with the best validation score."""
    best = max(tuning, key=validation)
    assert best.dropout is not None
    return best.dropout


def validation(training: Training) -> float:
    """The BLEU of its best model on the validation set."""
    return float(training.run.best_metadata()["bleu"])
