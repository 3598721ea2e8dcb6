"""Work in several processes."""

import os
import signal
import subprocess
import sys
import time

import pytest

from seq2seq_attn.data.processes import map_in_order
from seq2seq_attn.errors import UserError
from tests.waiting import wait_for


def square(number):
    time.sleep(0.2 if number == 7 else 0.01)  # the others overtake it, and each process gets some
    return number * number, os.getpid()


def fail(number):
    if number == 2:
        raise UserError("number 2: too many")
    return number


def die(number):
    os._exit(3)


@pytest.mark.parametrize("num_processes", [1, 2])
def test_results_in_the_order_of_the_items(num_processes):
    results = list(map_in_order(square, range(40), num_processes=num_processes))
    assert [(item, result[0]) for item, result in results] == [(i, i * i) for i in range(40)]
    processes = {result[1] for _, result in results}
    assert (os.getpid() in processes) == (num_processes == 1)
    assert len(processes) == num_processes


@pytest.mark.parametrize("num_processes", [1, 2])
def test_few_items_are_read_ahead_and_errors_come_through(num_processes):
    read = []
    items = (read.append(item) or item for item in range(60))
    for item, _ in map_in_order(square, items, num_processes=num_processes):
        assert len(read) - item <= 2 * num_processes + 1
    with pytest.raises(UserError, match="number 2"):
        list(map_in_order(fail, range(9), num_processes=num_processes))


def test_a_process_that_dies_is_named():
    with pytest.raises(
        UserError, match=r"one of 2 worker processes died: .* data\.num_processes=1"
    ):
        list(map_in_order(die, range(3), num_processes=2))


PARENT = """
import os, sys
from seq2seq_attn.data.processes import map_in_order
from tests.data.test_processes import square
if __name__ == "__main__":
    for item, (_, pid) in map_in_order(square, range(10**9), num_processes=1 + 1):
        print(pid, flush=True)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.parametrize(
    "how", [signal.SIGKILL, pytest.param(signal.SIGINT, marks=pytest.mark.slow)]
)
def test_workers_end_with_their_parent(tmp_path, how):
    script = tmp_path / "parent.py"
    script.write_text(PARENT)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    with subprocess.Popen(
        [sys.executable, str(script)],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=environment,
        text=True,
    ) as parent:
        assert parent.stdout is not None
        workers = {int(parent.stdout.readline()) for _ in range(200)}
        parent.send_signal(how)
        wait_for(lambda: not any(is_running(worker) for worker in workers))


def is_running(pid):
    try:
        with open(f"/proc/{pid}/stat") as stream:
            return stream.read().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
