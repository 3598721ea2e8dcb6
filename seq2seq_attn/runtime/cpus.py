"""The CPUs that this process may use, and those that other processes use."""

import os
import time
from collections.abc import Iterator
from pathlib import Path

_PROC, _CGROUPS = Path("/proc"), Path("/sys/fs/cgroup")
_CORE = "/sys/devices/system/cpu/cpu{}/topology/thread_siblings_list"


def affinity() -> set[int]:
    """The CPUs that this process may run on, by number."""
    if hasattr(os, "sched_getaffinity"):
        return os.sched_getaffinity(0)
    return set(range(os.cpu_count() or 1))


def num_available_cpus() -> int:
    """Number of CPUs that this process may use: those of its affinity, or fewer by the quota of a cgroup."""
    return max(1, int(min([len(affinity()), *_quotas()])))


def num_cores() -> int | None:
    """Number of cores with CPUs of this process's affinity; None: unknown."""
    siblings = {_text(Path(_CORE.format(number))) for number in affinity()}
    return None if "" in siblings else len(siblings)


class Load:
    """The CPUs that other processes use, on average since the last look."""

    def __init__(self) -> None:
        self._begin()

    def _begin(self) -> None:
        self._at_s, self._own_s, self._busy_s = time.monotonic(), time.process_time(), _busy_seconds()

    @property
    def seconds(self) -> float:
        """Seconds since the last look."""
        return time.monotonic() - self._at_s

    def look(self) -> float:
        """The average number of CPUs. Without Linux's /proc/stat, the system's load of the last minute counts."""
        at_s, own_s, busy_s = self._at_s, self._own_s, self._busy_s
        self._begin()
        seconds = max(self._at_s - at_s, 1e-9)
        if busy_s is None or self._busy_s is None:
            busy = os.getloadavg()[0]
        else:
            busy = (self._busy_s - busy_s) / seconds
        return max(0.0, busy - (self._own_s - own_s) / seconds)


def _busy_seconds() -> float | None:
    """Seconds in which the CPUs of this process were not idle, a hypervisor's share included; None: unknown."""
    own = {f"cpu{number}" for number in affinity()}
    rows = [line.split() for line in _text(_PROC / "stat").splitlines()]
    # user, nice, system, idle, iowait, irq, softirq, steal; the numbers after these are parts of user and nice
    ticks = [[int(number) for number in numbers[:8]] for name, *numbers in rows if name in own]
    return sum(sum(cpu) - cpu[3] - cpu[4] for cpu in ticks) / os.sysconf("SC_CLK_TCK") if ticks else None


def _quotas() -> Iterator[float]:
    """The CPUs that this process's cgroup and those above it allow (versions 1 and 2)."""
    for line in _text(_PROC / "self/cgroup").splitlines():
        _, controllers, name = line.split(":", maxsplit=2)
        if controllers and "cpu" not in controllers.split(","):
            continue
        root = _CGROUPS / controllers
        folder = root / name.lstrip("/")
        while folder.is_relative_to(root):  # in a container, the name may be the host's: then only the root exists
            old = " ".join(_text(folder / f"cpu.cfs_{part}_us") for part in ("quota", "period"))
            quota, *period = f"{_text(folder / 'cpu.max')} {old} max".split()
            if quota not in ("max", "-1"):
                yield int(quota) / int(period[0])
            folder = folder.parent


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8").strip()
    except OSError:
        return ""
