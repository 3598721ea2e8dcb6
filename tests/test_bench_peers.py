"""How the contestants of `scripts/bench_peers` take turns."""

import json
import os
import subprocess
import sys

from scripts.laboratory.harness.records import ROOT

CONTESTANT = """
from scripts.laboratory.benchmarks.peers.turns import Turns

turns = Turns()
for batch in turns.train(range(1, 100), lambda batch: 10 * batch):
    print("chatter that is no answer", batch)
"""


def test_turns_give_the_batches_that_were_asked_for_and_end_with_the_commands():
    task = json.dumps({"cpu": max(os.sched_getaffinity(0))})
    commands = "".join(json.dumps({"updates": updates}) + "\n" for updates in (2, 3))
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", CONTESTANT, task]
    done = subprocess.run(command, input=commands, env=environment, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert [answer["amount"] for answer in answers] == [10 + 20, 30 + 40 + 50]
    assert all(answer["seconds"] > 0 and answer["peak_mib"] > 1 for answer in answers)
