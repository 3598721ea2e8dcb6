"""Choose torch's number of threads by the size of the model and the load of the machine.

Threads that share a CPU with other processes can be slower than one thread: an update, or a batch
in a search, has thousands of parallel sections. At the end of each the threads wait for the slowest
by spinning, and the slowest waits for its CPU. On two CPUs beside one busy process, two threads had
0.04 to 0.5 times the speed of one thread (`multi30k`, training and beam search); beside a process
that used half a CPU or less, 1.0 to 1.35 times. So there are as many threads as CPUs that other
processes leave free, rounded. The number is chosen once, at the start. torch is imported on first
use.
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
"""Models with fewer parameters, such as that of `quickstart`, run on one thread. On two CPUs (Zen
4), two threads had 0.8 to 1.1 times the speed of one at 0.8 million, 0.85 to 1.15 at 1.6 million,
0.8 to 1.4 at 1.9 million, and 0.9 to 1.35 at 7.5 million (`multi30k`), in training and in
search."""
_SAMPLE_S = 0.05
_MAX_SAMPLES = 4

_default = _last_set = 0
"""torch's own number of threads, and the number that this module set last; 0: it has set none"""


def affinity() -> set[int]:
    """The CPUs that this process may run on, by number."""
    if hasattr(os, "sched_getaffinity"):
        return os.sched_getaffinity(0)
    return set(range(os.cpu_count() or 1))


def num_available_cpus() -> int:
    """Number of CPUs that this process may use: those of its affinity, or fewer by the quota of its
    cgroup or of one above it (versions 1 and 2)."""
    limit = float(len(affinity()))
    for line in _read(_PROC / "self/cgroup").splitlines():
        _, controllers, name = line.split(":", maxsplit=2)
        if controllers and "cpu" not in controllers.split(","):
            continue
        root = _CGROUPS / controllers
        folder = root / name.lstrip("/")
        # In a container the name may be the host's; then only the root exists.
        while folder.is_relative_to(root):
            limit = min(limit, _quota(folder))
            folder = folder.parent
    return max(1, int(limit))


def _quota(cgroup: Path) -> float:
    """The number of CPUs that a cgroup allows."""
    version_1 = f"{_read(cgroup / 'cpu.cfs_quota_us')} {_read(cgroup / 'cpu.cfs_period_us')}"
    fields = (_read(cgroup / "cpu.max") or version_1).split()
    if len(fields) < 2 or fields[0] in ("max", "-1"):
        return math.inf
    return int(fields[0]) / int(fields[1])


def num_cores() -> int | None:
    """Number of cores with CPUs of this process's affinity; None: unknown."""
    siblings = {_read(Path(_CORE.format(number))) for number in affinity()}
    return None if "" in siblings else len(siblings)


class CpuTimes(NamedTuple):
    """Clocks at one moment, in seconds."""

    wall_s: float
    own_s: float
    """CPU time of this process"""
    busy_s: float | None
    """time in which the CPUs of this process were not idle, a hypervisor's share included; None:
    unknown"""


def read_cpu_times() -> CpuTimes:
    """Read the clocks now."""
    return CpuTimes(time.monotonic(), time.process_time(), _busy_seconds())


def _busy_seconds() -> float | None:
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
    """The average number of CPUs that other processes used between two moments. Without Linux's
    /proc/stat, the system's load of the last minute counts."""
    seconds = max(now.wall_s - before.wall_s, 1e-9)
    own = (now.own_s - before.own_s) / seconds
    if before.busy_s is None or now.busy_s is None:
        return max(0.0, os.getloadavg()[0] - own)
    return max(0.0, (now.busy_s - before.busy_s) / seconds - own)


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8").strip()
    except OSError:
        return ""


def set_threads(number: int) -> None:
    """Set torch's number of threads. A later choice may replace it."""
    import torch

    global _default, _last_set
    _default = _default or torch.get_num_threads()
    _last_set = number
    torch.set_num_threads(number)


def is_set_by_user() -> bool:
    """Whether the environment or the calling program has set the number of threads. The latter
    shows if the number is not torch's default, which is one per core."""
    import torch

    if any(os.environ.get(name) for name in USER_VARIABLES):
        return True
    cores = num_cores()
    return cores is not None and torch.get_num_threads() not in (cores, len(affinity()), _last_set)


def choose_threads(num_parameters: int, began: CpuTimes | None = None) -> None:
    """Set torch's number of threads for a model: one if the model is small, else one per CPU that
    other processes leave free, up to torch's default. A number that the user has set stays.

    `began`: the clocks before other work, such as reading the model, so that no time is spent on
    waiting; None: the load is measured from now on.
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
    """The number of CPUs that other processes use, in the quietest of a few samples: a process that
    ends in a moment must not decide. The first sample that leaves `most` threads is enough."""
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
    """The number of threads, from 1 to `most`, beside other processes that use `load` CPUs."""
    return max(1, min(most, round(len(affinity()) - load)))
