"""The blocks, their settings, their time and their records. Needs the standard library only."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from scripts.benchmarks import pages_gpu
from scripts.laboratory.harness.records import ROOT, SPEED, Record, describe
from seq2seq_attn.files import read_json, write_json

WORK = ROOT / "build" / "gpu"
"""Run directories of unfinished training, and what `--from` unpacks."""
BUNDLE_ABOUT = WORK / "bundle.json"
BLOCKS = {
    "tests": "the device tests and the golden loss curves",
    "training": "training speed, eager and with CUDA graphs, in fp32, TF32 and bf16, against the tutorial's loop",
    "translation": "translation speed: greedy, beam 5, one sentence at a time",
    "bleu": "`seq2seq train` on Multi30k with CUDA graphs, to 35 and to 40 BLEU",
    "bleu-eager": "the same without CUDA graphs",
}


@dataclass(frozen=True)
class Settings:
    """Settings of all blocks."""

    device: str
    minutes: float
    records: Path
    work: Path
    is_rehearsal: bool = False

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

    def is_done(self, name: str) -> bool:
        """Whether a block has come to its end."""
        record = self.read_record(name)
        return record is not None and bool(record["is_finished"])


class Budget:
    """The most time that a block may take."""

    def __init__(self, minutes: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._ends_at = clock() + 60 * minutes

    @property
    def left_s(self) -> float:
        """Seconds left, at least 0."""
        return max(0.0, self._ends_at - self._clock())

    def share(self, fraction: float) -> Budget:
        """A part of what is left."""
        return Budget(fraction * self.left_s / 60, self._clock)


def write_record(settings: Settings, name: str, *, is_finished: bool, values: Record) -> None:
    """Write a block's record, with versions, device, date and commit, and print it as the page shows it."""
    environment = {**describe("scripts/gpu", settings.device), "command": ["scripts/gpu", name]}
    if environment["git"] is None and BUNDLE_ABOUT.is_file():  # no checkout, but a copy of one
        environment["git"] = read_json(BUNDLE_ABOUT)["git"]
    value = {"block": name, "is_finished": is_finished, **values, "environment": environment}
    write_json(settings.record_path(name), value)
    print("\n".join(pages_gpu.SECTIONS[name](value)))


def child_environment(num_threads: int | None = None) -> dict[str, str]:
    """The environment of a process that a block starts: it finds the package of this checkout."""
    path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    threads = {} if num_threads is None else {"OMP_NUM_THREADS": str(num_threads)}
    return {**os.environ, "PYTHONPATH": path, **threads}
