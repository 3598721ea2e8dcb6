"""The CPUs of this process, and the load of others, from files that a system shows."""

import os
from types import SimpleNamespace

import pytest

from seq2seq_attn.runtime import threads

TICKS_PER_S = os.sysconf("SC_CLK_TCK")


class Machine:
    """Files of a system with four CPUs, of which this process may use the first three."""

    def __init__(self, folder):
        self.proc = folder / "proc"
        self.cgroups = folder / "cgroups"
        self.now_s = self.own_s = 100.0
        self.busy_s = [0.0] * 4

    def write(self, files, folder=None):
        for name, text in files.items():
            path = (folder or self.proc) / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(f"{text}\n")

    def pass_time(self, seconds, *, own, busy):
        """`own`: CPU seconds of this process; `busy`: of all processes, on each CPU, half of them
        stolen."""
        self.now_s += seconds
        self.own_s += own
        self.busy_s = [before + more for before, more in zip(self.busy_s, busy, strict=True)]
        lines = ["cpu  99 99 99 99 99 99 99 99 0 0"]
        for number, busy_s in enumerate(self.busy_s):
            user = steal = round(busy_s * TICKS_PER_S / 2)
            idle = round((self.now_s - busy_s) * TICKS_PER_S)
            lines.append(f"cpu{number} {user} 0 0 {idle - idle // 3} {idle // 3} 0 0 {steal} 50 50")
        self.write({"stat": "\n".join([*lines, "ctxt 437958"])})


@pytest.fixture
def machine(monkeypatch, tmp_path):
    machine = Machine(tmp_path)
    monkeypatch.setattr(threads, "_PROC", machine.proc)
    monkeypatch.setattr(threads, "_CGROUPS", machine.cgroups)
    monkeypatch.setattr(threads, "affinity", lambda: {0, 1, 2})
    clock = SimpleNamespace(monotonic=lambda: machine.now_s, process_time=lambda: machine.own_s)
    monkeypatch.setattr(threads, "time", clock)
    return machine


@pytest.mark.parametrize(
    ("seconds", "own", "busy", "load"),
    [
        (2.0, 1.5, (2.0, 1.0, 0.0, 2.0), 0.75),
        (1.0, 2.0, (1.0, 0.9, 0.0, 1.0), 0.0),  # clocks of different precision
    ],
)
def test_load_is_what_other_processes_use_of_the_cpus_of_this_process(
    machine, seconds, own, busy, load
):
    machine.pass_time(0.0, own=0.0, busy=(50.0, 0.0, 3.0, 9.0))
    before = threads.read_cpu_times()
    machine.pass_time(seconds, own=own, busy=busy)
    assert threads.load_of_others(before, threads.read_cpu_times()) == pytest.approx(load)


def test_without_counters_the_system_load_counts(machine, monkeypatch):
    monkeypatch.setattr(os, "getloadavg", lambda: (2.5, 9.0, 9.0))
    before = threads.read_cpu_times()
    machine.now_s += 2.0
    machine.own_s += 1.0
    assert threads.load_of_others(before, threads.read_cpu_times()) == pytest.approx(2.0)


@pytest.mark.parametrize(
    ("own", "limits", "number"),
    [
        ("0::/", {}, 3),
        ("0::/", {"cpu.max": "200000 100000"}, 2),
        ("0::/", {"cpu.max": "max 100000"}, 3),
        ("0::/a/b", {"a/cpu.max": "50000 100000", "a/b/cpu.max": "250000 100000"}, 1),
        ("0::/host/only", {"cpu.max": "290000 100000"}, 2),
        ("4:memory:/m\n3:cpu,cpuacct:/a", {"cpu,cpuacct/a/cpu.cfs_quota_us": "100000"}, 1),
        ("3:cpu:/a", {"cpu/a/cpu.cfs_quota_us": "-1", "cpu/cpu.cfs_quota_us": "200000"}, 2),
        ("2:cpuset:/a", {"cpuset/a/cpu.max": "100000 100000"}, 3),
    ],
)
def test_a_quota_lowers_the_number_of_cpus(machine, own, limits, number):
    machine.write({"self/cgroup": own})
    periods = {name.replace("quota", "period"): "100000" for name in limits if "quota" in name}
    machine.write(limits | periods, machine.cgroups)
    assert threads.num_available_cpus() == number


def test_this_machine_is_described():
    assert 1 <= threads.num_available_cpus() <= (os.cpu_count() or 1)
    assert threads.num_cores() in (None, *range(1, len(threads.affinity()) + 1))
