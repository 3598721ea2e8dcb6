"""CPUs and threads: what this process may use, what other processes leave free, and torch's number
of threads.

Threads that share a CPU with other processes can be slower than one thread: an update, or a batch
in a search, has thousands of parallel sections. At the end of each the threads wait for the slowest
by spinning, and the slowest waits for its CPU. On two CPUs beside one busy process, two threads had
0.04 to 0.5 times the speed of one thread (`multi30k`, training and beam search); beside a process
that used half a CPU or less, 1.0 to 1.35 times. So there are as many threads as CPUs that other
processes leave free, rounded. torch is imported on first use.
"""

import logging
import os
import time
from collections.abc import Iterator
from pathlib import Path

log = logging.getLogger(__name__)

_PROC, _CGROUPS = Path("/proc"), Path("/sys/fs/cgroup")
_CORE = "/sys/devices/system/cpu/cpu{}/topology/thread_siblings_list"
USER_VARIABLES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS")
SMALL_MODEL = 1_500_000
"""Models with fewer parameters, such as that of `quickstart`, run on one thread. On two CPUs (Zen
4), two threads had 0.8 to 1.1 times the speed of one at 0.8 million, 0.85 to 1.15 at 1.6 million,
0.8 to 1.4 at 1.9 million, and 0.9 to 1.35 at 7.5 million (`multi30k`), in training and in
search."""
_SAMPLE_S, _MAX_LOOKS = 0.05, 4
_LOOK_EVERY_S = 2.0
_RETRY_EVERY_S = 20.0
"""between looks with fewer threads than at first, so that a load that comes and goes is met a tenth
of the time only"""

_default = _last_set = 0
"""torch's own number of threads, and the number that this module set last; 0: it has set none"""


def affinity() -> set[int]:
    """The CPUs that this process may run on, by number."""
    if hasattr(os, "sched_getaffinity"):
        return os.sched_getaffinity(0)
    return set(range(os.cpu_count() or 1))


def num_available_cpus() -> int:
    """Number of CPUs that this process may use: those of its affinity, or fewer by the quota of a
    cgroup."""
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
        self._at_s, self._own_s, self._busy_s = (
            time.monotonic(),
            time.process_time(),
            _busy_seconds(),
        )

    @property
    def seconds(self) -> float:
        """Seconds since the last look."""
        return time.monotonic() - self._at_s

    def look(self) -> float:
        """The average number of CPUs. Without Linux's /proc/stat, the system's load of the last
        minute counts."""
        at_s, own_s, busy_s = self._at_s, self._own_s, self._busy_s
        self._begin()
        seconds = max(self._at_s - at_s, 1e-9)
        if busy_s is None or self._busy_s is None:
            busy = os.getloadavg()[0]
        else:
            busy = (self._busy_s - busy_s) / seconds
        return max(0.0, busy - (self._own_s - own_s) / seconds)


def _busy_seconds() -> float | None:
    """Seconds in which the CPUs of this process were not idle, a hypervisor's share included; None:
    unknown."""
    own = {f"cpu{number}" for number in affinity()}
    rows = [line.split() for line in _text(_PROC / "stat").splitlines()]
    # user, nice, system, idle, iowait, irq, softirq, steal; the numbers after these are parts of
    # user and nice
    ticks = [[int(number) for number in numbers[:8]] for name, *numbers in rows if name in own]
    return (
        sum(sum(cpu) - cpu[3] - cpu[4] for cpu in ticks) / os.sysconf("SC_CLK_TCK")
        if ticks
        else None
    )


def _quotas() -> Iterator[float]:
    """The CPUs that this process's cgroup and those above it allow (versions 1 and 2)."""
    for line in _text(_PROC / "self/cgroup").splitlines():
        _, controllers, name = line.split(":", maxsplit=2)
        if controllers and "cpu" not in controllers.split(","):
            continue
        root = _CGROUPS / controllers
        folder = root / name.lstrip("/")
        while folder.is_relative_to(
            root
        ):  # in a container, the name may be the host's: then only the root exists
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


def set_threads(number: int) -> None:
    """Set torch's number of threads. A later choice may replace it."""
    import torch

    global _default, _last_set
    _default, _last_set = _default or torch.get_num_threads(), number
    torch.set_num_threads(number)


def is_set_by_user() -> bool:
    """Whether the environment or the calling program has set the number of threads. The latter
    shows if the number is not torch's default, which is one per core."""
    import torch

    if any(os.environ.get(name) for name in USER_VARIABLES):
        return True
    cores = num_cores()
    return cores is not None and torch.get_num_threads() not in (cores, len(affinity()), _last_set)


def choose_threads(num_parameters: int, load: Load | None = None) -> int:
    """Set torch's number of threads for a model: one if the model is small, else one per CPU that
    other processes leave free, up to torch's default. A number that the user has set stays. Returns
    the number for an idle machine.

    `load`: begun before other work, so that no time is spent on waiting; None: begun now.
    """
    import torch

    if is_set_by_user():
        return torch.get_num_threads()
    most = 1
    if num_parameters >= SMALL_MODEL:
        most = min(_default or torch.get_num_threads(), num_available_cpus())
    number, load, looks = most, load or Load(), list[float]()
    while (
        most > 1 and len(looks) < _MAX_LOOKS
    ):  # the quietest counts: a process that ends in a moment must not decide
        time.sleep(max(0.0, _SAMPLE_S - load.seconds))
        looks.append(load.look())
        if (number := free_threads(min(looks), most)) == most:
            break
    if number < most:
        log.info(
            "threads: %d of %d: other processes use %.1f of %d CPUs",
            number,
            most,
            min(looks),
            len(affinity()),
        )
    set_threads(number)
    return most


def free_threads(others: float, most: int) -> int:
    """The number of threads, from 1 to `most`, beside other processes that use `others` CPUs."""
    return max(1, min(most, round(len(affinity()) - others)))


class Watch:
    """Compares the number of threads, at most every few seconds, with the CPUs that other processes
    leave free."""

    def __init__(self, most: int, *, fix: str | None = None) -> None:
        """`most`: threads on an idle machine. `fix`: how the user can lower the number, for a
        single warning; None: the watch sets it, unless the user has done so."""
        import torch

        self._most, self._number = most, torch.get_num_threads()
        self._fix = fix or (f"lower {USER_VARIABLES[0]}" if is_set_by_user() else None)
        self._is_told = False
        self._load = Load()

    def check(self) -> None:
        """Look at the load if it is time to. Call it between updates or batches."""
        import torch

        if self._fix is None:
            if torch.get_num_threads() != _last_set:
                return  # the calling program has set it since
            if self._number != _last_set:
                set_threads(self._number)  # the model used before has another number
        is_soon = self._fix is None and self._number == self._most
        if self._most == 1 or self._load.seconds < (_LOOK_EVERY_S if is_soon else _RETRY_EVERY_S):
            return
        others = self._load.look()
        free = free_threads(others, self._most)
        if free < self._number and not self._is_told:
            self._is_told = True
            text = "other processes use %.1f of %d CPUs, so %d threads are slower than %d: %s"
            log.warning(
                text, others, len(affinity()), self._number, free, self._fix or "fewer from now on"
            )
        if self._fix is None and free != self._number:
            self._number = free
            set_threads(free)
