"""Processes that are watched from outside: wall time, peak memory, output. Needs the standard library only."""

from __future__ import annotations

import os
import resource
import subprocess
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple


class Finished(NamedTuple):
    """A process that has ended."""

    seconds: float
    peak_mib: float | None
    """largest resident set of the process. None: unknown, because a process starts as a copy of its parent, so that a
    peak below the parent's own cannot be seen"""
    exit_code: int
    stderr: str


def run_timed(command: Sequence[str]) -> Finished:
    """Run a command to its end, without its output."""
    with tempfile.TemporaryFile() as errors:
        began_at = time.perf_counter()
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=errors)
        _, status, usage = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - began_at
        errors.seek(0)
        stderr = errors.read().decode(errors="replace").strip()
    process.returncode = os.waitstatus_to_exitcode(status)  # which Popen cannot ask for after `wait4`
    is_hidden = usage.ru_maxrss <= resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return Finished(seconds, None if is_hidden else usage.ru_maxrss / 1024, process.returncode, stderr)


def peak_mib(process: subprocess.Popen[bytes], every_s: float) -> float:
    """Wait until a process has ended; the largest memory of its whole tree, sampled every `every_s` seconds."""
    peak_bytes, sampled_at = 0, time.monotonic()
    while process.poll() is None:
        time.sleep(min(0.1, every_s))
        if time.monotonic() - sampled_at > every_s:
            peak_bytes = max(peak_bytes, proportional_bytes(process.pid))
            sampled_at = time.monotonic()
    return peak_bytes / 2**20


def proportional_bytes(pid: int) -> int:
    """Proportional set size of a process and its descendants: pages that several of them share count once."""
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
        children = [
            int(child)
            for thread in Path(f"/proc/{pid}/task").iterdir()
            for child in (thread / "children").read_text().split()
        ]
    except OSError:  # it has just ended
        return 0
    kib = sum(int(line.split()[1]) for line in lines if line.startswith("Pss:"))
    return 1024 * kib + sum(map(proportional_bytes, children))
