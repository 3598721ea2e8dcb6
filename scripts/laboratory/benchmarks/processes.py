"""Training speed and memory of two cores: one process with one or two threads, or two processes that torchrun starts.

Speed is the run's own (its log), the median over windows of updates, without the first window. Memory is resident, of
all processes together (proportional set size).
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from scripts.benchmarks.pages import publish
from scripts.benchmarks.training_course import read_events
from scripts.harness.processes import peak_mib
from scripts.harness.records import Record, describe, exit_code, set_arguments
from scripts.harness.turns import paired_ratio
from seq2seq_attn.errors import UserError
from seq2seq_attn.runtime.precision import cpu_multiplies_bf16

WINDOW = 10
SAMPLE_EVERY_S = 3.0  # adding up the pages of a process takes it, and a core, some time
PRODUCTS_S = 3.0
# matrix products alone, of a size that stays in the caches: what a core can do without the rest of training
PRODUCTS = """
import sys, time, torch
torch.set_num_threads(1)
a = b = torch.ones(512, 512, dtype=getattr(torch, sys.argv[3]))
starts_at, seconds = map(float, sys.argv[1:3])
while time.time() < starts_at:
    a @ b
count = 0
while time.time() < starts_at + seconds:
    a @ b
    count += 1
print(count)
"""
TORCHRUN = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node"]
WAYS = {"1 process, 1 thread": (1, 1), "1 process, 2 threads": (1, 2), "2 processes, 1 thread each": (2, 1)}


def main() -> None:
    """Train the same updates in every way, turn by turn; print, record."""
    options = parse()
    turns: dict[str, list[Record]] = {name: [] for name in WAYS}
    machine_ratios = []
    for turn in range(options.turns):
        machine_ratios.append(count_products(2) / count_products(1))
        for name in WAYS if turn % 2 == 0 else reversed(WAYS):
            turns[name].append(train(*WAYS[name], options))
            print(f"turn {turn + 1}, {name}: {turns[name][-1]['tokens_per_s']:,.0f} tokens/s", file=sys.stderr)
    speeds = {name: [one["tokens_per_s"] for one in of_way] for name, of_way in turns.items()}
    rows = []
    for name, of_way in turns.items():
        ratio = paired_ratio(speeds[name], next(iter(speeds.values())))
        peak = max(one["peak_mib"] for one in of_way)
        about = {"name": name, "tokens_per_s": statistics.median(speeds[name]), "ratio": ratio.value}
        rows.append({**about, "interval": [ratio.low, ratio.high], "peak_mib": peak})
    record = {"config": options.config, "updates": options.updates, "turns": options.turns, "rows": rows}
    record |= {"machine_ratio": statistics.median(machine_ratios), "environment": describe("bench_processes")}
    publish("processes", record, save=options.record)


def count_products(num_processes: int) -> int:
    """How many matrix products that many processes, of one thread each, make in the same few seconds."""
    dtype = "bfloat16" if cpu_multiplies_bf16() else "float32"
    arguments = [str(time.time() + 5.0), str(PRODUCTS_S), dtype]  # both have started by then
    processes = [
        subprocess.Popen([sys.executable, "-c", PRODUCTS, *arguments], stdout=subprocess.PIPE, text=True)
        for _ in range(num_processes)
    ]
    return sum(int(process.communicate()[0]) for process in processes)


def train(num_processes: int, num_threads: int, options: argparse.Namespace) -> Record:
    """The first updates of a configuration: tokens per second and peak memory."""
    launcher = [*TORCHRUN, str(num_processes)] if num_processes > 1 else [sys.executable]
    settings = {
        "train.max_updates": options.updates,
        "train.schedule.name": "constant",  # the configured one may need to know the end
        "train.log_every_updates": WINDOW,
        "train.num_threads": num_threads,
        "train.validation.num_pairs": 1,
        "train.validation.every_updates": 10 * options.updates,
    }
    with tempfile.TemporaryDirectory() as folder:
        run_dir = Path(folder) / "run"
        command = [*launcher, "-m", "seq2seq_attn", "train", "-c", options.config, "--run-dir", str(run_dir)]
        command += set_arguments(f"{key}={value}" for key, value in settings.items())
        with (Path(folder) / "log").open("w+") as log:
            environment = {**os.environ, "OMP_NUM_THREADS": str(num_threads)}
            process = subprocess.Popen(command, stderr=log, env=environment, text=True)
            peak = peak_mib(process, SAMPLE_EVERY_S)
            if process.returncode:
                log.seek(0)
                raise UserError(f"{command}: exit {process.returncode}\n{log.read()}")
        windows = [event for event in read_events(run_dir) if event["event"] == "train"]
    speed = statistics.median(window["tokens_per_s"] for window in windows[1:])
    return {"tokens_per_s": speed, "peak_mib": peak}


def parse() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(prog="scripts/bench_processes", description=__doc__)
    parser.add_argument("--config", default="multi30k")
    parser.add_argument("--updates", type=int, default=60)
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--record", action="store_true", help="write docs/speed/processes.json")
    options = parser.parse_args()
    if options.updates < 2 * WINDOW:  # the first window is not counted
        parser.error(f"--updates {options.updates}: expected at least {2 * WINDOW}")
    return options


if __name__ == "__main__":
    sys.exit(exit_code(main))
