"""The training runs of rows: their settings, where they are stored, and which row a run trained by hand belongs to."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from scripts.mechanism_bench.plan import CAPTIONS, MULTI30K, Row
from seq2seq_attn.commands.train_runs import PlannedRun, different_settings
from seq2seq_attn.config import Config
from seq2seq_attn.run_dir import RunDir

RUNS = Path("runs/mechanisms")
IN_TABLE = {"train.precision"}
"""settings that runs of a row may differ in, because the table of training runs has them"""


@dataclass(frozen=True)
class Training:
    """A row with one seed, on captions or on Multi30k."""

    row: Row
    seed: int
    base: str = CAPTIONS
    path: Path | None = None
    """of a run trained elsewhere; None: where this script trains it"""

    @property
    def run(self) -> RunDir:
        """Where it is stored."""
        prefix = "" if self.base == CAPTIONS else f"{self.base}-"
        return RunDir(self.path or RUNS / f"{prefix}{self.row.stem}-s{self.seed}")

    @property
    def config(self) -> Config:
        """All of its settings."""
        return self.planned.config

    @property
    def planned(self) -> PlannedRun:
        """How `seq2seq train` is called for it."""
        return PlannedRun.of(self.run, [self.base, self.row.overlay], [*self.row.settings, f"seed={self.seed}"])


def find_trained(folder: Path, rows: Iterable[Row]) -> Iterator[Training]:
    """The finished runs directly under a folder that were trained with the settings of a row, whatever their names."""
    planned = [(row, base, Training(row, 1, base).config) for base in (CAPTIONS, MULTI30K) for row in rows]
    for path in sorted(folder.iterdir()):
        run = RunDir(path)
        if (path / "config.yaml").is_file() and run.is_finished():
            config = run.config()
            first_seed = config.model_copy(update={"seed": 1})
            for row, base, own in planned:
                if different_settings(first_seed, own).keys() <= IN_TABLE:
                    yield Training(row, config.seed, base, path)
