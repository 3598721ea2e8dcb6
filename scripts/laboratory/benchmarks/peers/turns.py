"""The contestant's end of a turn in scripts/bench_peers: a command is a JSON line on stdin, its answer one on stdout.

Standard library only, as it also runs in the peers' environments.
"""

from __future__ import annotations

import importlib.metadata
import json
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, NoReturn, TypeVar

BatchT = TypeVar("BatchT")


class Turns:
    """A contestant's end of the pipe. Its task is a JSON object, the first argument."""

    def __init__(self) -> None:
        self.task: dict[str, Any] = json.loads(sys.argv[1])
        self._answers = os.fdopen(os.dup(1), "w")
        os.dup2(2, 1)  # what a library prints goes where its log goes

    def ready(self, model: Any, *packages: str) -> None:
        """Say that all is loaded, and what."""
        parameters = {id(parameter): parameter.numel() for parameter in model.parameters()}
        versions = {name: importlib.metadata.version(name) for name in (*packages, "torch", "numpy")}
        self._answer(parameters=sum(parameters.values()), versions=versions)

    def train(self, batches: Iterable[BatchT], count_tokens: Callable[[BatchT], int]) -> Iterator[BatchT]:
        """The batches, as many as each turn asks for. A turn's clock runs from asking for its first batch until the
        batch after its last is asked for: building batches counts, as does all of the last update."""
        iterator = iter(batches)
        while True:
            command = self._wait()
            began_at = time.perf_counter()
            tokens = 0
            for _ in range(command["updates"]):
                batch = next(iterator)
                tokens += count_tokens(batch)
                yield batch
            self._answer(amount=tokens, seconds=time.perf_counter() - began_at)

    def decode(self, translate: Callable[[str, int], Iterable[Any]]) -> NoReturn:
        """For ever: translate what a turn asks for. `translate(split, beam_size)` gives each sentence's tokens."""
        while True:
            command = self._wait()
            began_at = time.perf_counter()
            found = list(translate(command["split"], command["beam_size"]))
            seconds = time.perf_counter() - began_at
            self._answer(amount=len(found), seconds=seconds, steps=sorted({len(tokens) for tokens in found}))

    def _wait(self) -> dict[str, Any]:
        line = sys.stdin.readline()
        if not line:
            os._exit(0)  # SystemExit would make a peer save a checkpoint first; the parent removes the folder
        os.sched_setaffinity(0, {self.task["cpu"]})  # not before: the contestants load side by side
        command: dict[str, Any] = json.loads(line)
        return command

    def _answer(self, **values: Any) -> None:
        print(json.dumps({**values, "peak_mib": peak_mib()}), file=self._answers, flush=True)


def peak_mib() -> float:
    """The most memory that this process has had resident. (`ru_maxrss` also counts its parent's, until it started.)"""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM:")) / 1024
