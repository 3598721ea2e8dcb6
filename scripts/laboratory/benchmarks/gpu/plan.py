"""The blocks, their settings and their time. Needs the standard library only."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from scripts.laboratory.harness.records import ROOT, SPEED, Record, describe
from seq2seq_attn.files import read_json, write_json

WORK = ROOT / "build" / "gpu"
"""run directories of unfinished training, and what `--from` unpacks"""
BUNDLE_ABOUT = WORK / "bundle.json"


class Block(NamedTuple):
    """A measurement with a record of its own."""

    minutes: float
    about: str


BLOCKS = {
    "check": Block(0.5, "losses of eager and graphed updates against the CPU's; nothing else runs if they differ"),
    "training": Block(2.5, "training speed, eager and with CUDA graphs, in fp32, TF32 and bf16, against the tutorial"),
    "bleu": Block(2.5, "`seq2seq train` on Multi30k with CUDA graphs, to 35 and to 40 BLEU"),
    "translation": Block(1.5, "translation speed: greedy, beam 5, one sentence at a time"),
    "tests": Block(2.0, "the device tests and the golden loss curves"),
    "bleu-eager": Block(4.0, "`seq2seq train` without CUDA graphs"),
}


@dataclass(frozen=True)
class Settings:
    """Settings of all blocks."""

    device: str
    records: Path
    work: Path
    minutes: float | None = None
    """time limit of each block; None: its own"""

    @property
    def is_rehearsal(self) -> bool:
        """Whether sizes are tiny and docs/ is left alone."""
        return self.device == "cpu"

    def record_path(self, name: str) -> Path:
        """Where a block's record is written."""
        return self.records / f"gpu-{name}.json"

    def read_record(self, name: str) -> Record | None:
        """A block's record, from the records' folder or, outside a rehearsal, from docs/speed."""
        published = [] if self.is_rehearsal else [SPEED / self.record_path(name).name]
        for path in (self.record_path(name), *published):
            if path.is_file():
                record: Record = read_json(path)
                return record
        return None

    def write_record(self, name: str, values: Record, *, is_finished: bool) -> None:
        """Write a block's record, with versions, device, date and commit."""
        environment = {**describe("gpu", self.device), "command": ["gpu", name]}
        if environment["git"] is None and BUNDLE_ABOUT.is_file():  # no checkout, but a copy of its files
            environment["git"] = read_json(BUNDLE_ABOUT)["git"]
        self.records.mkdir(parents=True, exist_ok=True)
        record = {"block": name, "is_finished": is_finished, **values, "environment": environment}
        write_json(self.record_path(name), record)


class Budget:
    """The most time that a block may take."""

    def __init__(self, minutes: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._ends_at = clock() + 60 * minutes

    def left_s(self) -> float:
        """Seconds left, at least 0."""
        return max(0.0, self._ends_at - self._clock())

    def share(self, fraction: float) -> Budget:
        """A part of the time that is left."""
        return Budget(fraction * self.left_s() / 60, self._clock)
