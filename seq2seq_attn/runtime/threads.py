"""Choose torch's number of threads by the size of the model and the load of the machine.

Threads that share a CPU with other processes can be slower than one thread. An update, or a batch
in a search, has thousands of parallel sections. At the end of each section, the threads wait for
the slowest thread by spinning, and the slowest thread waits for its CPU. In measurements on two
CPUs (`multi30k`, training and beam search), two threads had 0.04 to 0.5 times the speed of one
thread beside one busy process. Beside a process that used half a CPU or less, two threads had 1.0
to 1.35 times the speed.

So the number of threads is the rounded number of CPUs that other processes leave free. It is chosen
once, at the start. torch is imported on first use.
"""

import logging
import math
import os
import time
from pathlib import Path
from typing import NamedTuple

log = logging.getLogger(__name__)

_PROC = Path("/proc")
_CGROUPS = Path("/sys/fs/cgroup")
_CORE = "/sys/devices/system/cpu/cpu{}/topology/thread_siblings_list"
USER_VARIABLES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS")
SMALL_MODEL = 1_500_000
"""Models with fewer parameters, such as the model of `quickstart`, run on one thread. On two CPUs
(Zen 4), two threads had 0.8 to 1.1 times the speed of one thread with 0.8 million parameters, 0.85
to 1.15 times with 1.6 million, 0.8 to 1.4 times with 1.9 million, and 0.9 to 1.35 times with 7.5
million (`multi30k`, training and search)."""
_SAMPLE_S = 0.05
_MAX_SAMPLES = 4

_default = _last_set = 0
"""`_default` is torch's number of threads before this module changed it. `_last_set` is the number
that this module set last. Both are 0 until this module sets a number."""


def affinity() -> set[int]:
    """Return the numbers of the CPUs that this process may run on."""
    if hasattr(os, "sched_getaffinity"):
        return os.sched_getaffinity(0)
    return set(range(os.cpu_count() or 1))


def num_available_cpus() -> int:
    """Return the number of CPUs that this process may use. It is the number of CPUs in its
    affinity, or less if its cgroup or a parent cgroup (version 1 or 2) has a lower quota."""
    limit = float(len(affinity()))
    for line in _read(_PROC / "self/cgroup").splitlines():
        _, controllers, name = line.split(":", maxsplit=2)
        if controllers and "cpu" not in controllers.split(","):
            continue
        root = _CGROUPS / controllers
        folder = root / name.lstrip("/")
        # In a container, the name may be valid on the host only. Then only the root folder exists.
        while folder.is_relative_to(root):
            limit = min(limit, _quota(folder))
            folder = folder.parent
    return max(1, int(limit))


def _quota(cgroup: Path) -> float:
    """Return the number of CPUs that a cgroup allows; infinity if it has no quota."""
    version_1 = f"{_read(cgroup / 'cpu.cfs_quota_us')} {_read(cgroup / 'cpu.cfs_period_us')}"
    fields = (_read(cgroup / "cpu.max") or version_1).split()
    if len(fields) < 2 or fields[0] in ("max", "-1"):
        return math.inf
    return int(fields[0]) / int(fields[1])


def num_cores() -> int | None:
    """Return the number of cores to which the CPUs of this process belong. Return None if it is
    unknown."""
    siblings = {_read(Path(_CORE.format(number))) for number in affinity()}
    return None if "" in siblings else len(siblings)


class CpuTimes(NamedTuple):
    """Values of three clocks at one moment, in seconds."""

    wall_s: float
    own_s: float
    """CPU time of this process"""
    busy_s: float | None
    """time in which the CPUs of this process were not idle, time taken by a hypervisor included;
    None if unknown"""


def read_cpu_times() -> CpuTimes:
    """Read the clocks now."""
    return CpuTimes(time.monotonic(), time.process_time(), _busy_seconds())


def _busy_seconds() -> float | None:
    """Return the time in which the CPUs of this process were not idle, from Linux's /proc/stat.
    Return None if it is unknown."""
    names = {f"cpu{number}" for number in affinity()}
    ticks = 0
    for line in _read(_PROC / "stat").splitlines():
        name, *numbers = line.split()
        if name in names:
            # The last two numbers, guest and guest_nice, are contained in user and nice.
            user, nice, system, _idle, _iowait, irq, softirq, steal = map(int, numbers[:8])
            ticks += user + nice + system + irq + softirq + steal
    return ticks / os.sysconf("SC_CLK_TCK") if ticks else None


def load_of_others(before: CpuTimes, now: CpuTimes) -> float:
    """Return the average number of CPUs that other processes used between two moments. Without
    Linux's /proc/stat, it is computed from the system's load average of the last minute."""
    seconds = max(now.wall_s - before.wall_s, 1e-9)
    own = (now.own_s - before.own_s) / seconds
    if before.busy_s is None or now.busy_s is None:
        return max(0.0, os.getloadavg()[0] - own)
    return max(0.0, (now.busy_s - before.busy_s) / seconds - own)


def _read(path: Path) -> str:
    """Return the stripped text of a file; an empty text if the file cannot be read."""
    try:
        return path.read_text(encoding="utf-8").strip()
    except OSError:
        return ""


def set_threads(number: int) -> None:
    """Set torch's number of threads. A later call of `choose_threads` may change it."""
    import torch

    global _default, _last_set
    _default = _default or torch.get_num_threads()
    _last_set = number
    torch.set_num_threads(number)


def is_set_by_user() -> bool:
    """Return whether the user has set the number of threads, by environment variables or in the
    calling program. A program has set it if the number is not torch's default (one per core) and
    not the number that this module set."""
    import torch

    if any(os.environ.get(name) for name in USER_VARIABLES):
        return True
    cores = num_cores()
    return cores is not None and torch.get_num_threads() not in (cores, len(affinity()), _last_set)


def choose_threads(num_parameters: int, began: CpuTimes | None = None) -> None:
    """Set torch's number of threads for a model. Small models get one thread. Other models get one
    thread per CPU that other processes leave free, up to torch's default. A number that the user
    has set is kept.

    The load is measured from `began` on. If `began` was read before other work, such as reading the
    model, no time is spent on waiting. By default, the measurement starts now.
    """
    import torch

    if is_set_by_user():
        return
    most = min(_default or torch.get_num_threads(), num_available_cpus())
    if num_parameters < SMALL_MODEL or most == 1:
        set_threads(1)
        return
    load = _measure_load(began or read_cpu_times(), most)
    number = free_threads(load, most)
    if number < most:
        text = "threads: %d of %d: other processes use %.1f of %d CPUs"
        log.info(text, number, most, load, len(affinity()))
    set_threads(number)


def _measure_load(before: CpuTimes, most: int) -> float:
    """Return the number of CPUs that other processes use: the minimum of a few samples, so that a
    process that ends within a moment does not count. Sampling stops as soon as `most` threads are
    free."""
    load = math.inf
    for _ in range(_MAX_SAMPLES):
        time.sleep(max(0.0, before.wall_s + _SAMPLE_S - time.monotonic()))
        now = read_cpu_times()
        load = min(load, load_of_others(before, now))
        if free_threads(load, most) == most:
            break
        before = now
    return load


def free_threads(load: float, most: int) -> int:
    """Return the number of threads, from 1 to `most`, for a machine on which other processes use
    `load` CPUs."""
    return max(1, min(most, round(len(affinity()) - load)))
