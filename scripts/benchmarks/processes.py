"""See scripts/bench_processes. Speed is the run's own (its log), the median over windows of updates, the first left
out; memory is resident, of all processes together (proportional set size)."""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from bench_prepare import resident_bytes

from seq2seq_attn.files import write_json
from seq2seq_attn.runtime.environment import describe_environment
from seq2seq_attn.runtime.precision import cpu_multiplies_bf16

RECORD = Path("docs/speed/processes.json")
WINDOW = 10
SAMPLE_EVERY_S = 3.0  # to add up a process's pages takes it, and a core, some time
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


def main():
    """Train the same updates in every way, turn by turn; print, record."""
    options = parse()
    ways = {"1 process, 1 thread": (1, 1), "1 process, 2 threads": (1, 2), "2 processes, 1 thread each": (2, 1)}
    found = {name: [] for name in ways}
    machine_ratios = []
    for turn in range(options.turns):
        machine_ratios.append(count_products(2) / count_products(1))
        for name, way in ways.items():
            found[name].append(train(*way, options))
            print(f"turn {turn + 1}, {name}: {found[name][-1]['tokens_per_s']:,.0f} tokens/s", file=sys.stderr)
    first = next(iter(ways))
    rows = []
    for name, turns in found.items():
        ratios = [one["tokens_per_s"] / alone["tokens_per_s"] for one, alone in zip(turns, found[first], strict=True)]
        rows.append(
            {
                "name": name,
                "tokens_per_s": statistics.median(one["tokens_per_s"] for one in turns),
                "ratio": statistics.median(ratios),
                "peak_mib": max(one["peak_mib"] for one in turns),
                "loss": turns[0]["loss"],
            }
        )
    environment = describe_environment([Path(sys.argv[0]).name, *sys.argv[1:]], "cpu")
    print(f"{options.config}, {options.updates} updates, {environment['device_name']}, {environment['written_at']}")
    for row in rows:
        print(
            f"{row['name']:>28} {row['tokens_per_s']:>8,.0f} tokens/s {row['ratio']:>6.2f} x"
            f" {row['peak_mib']:>8,.0f} MiB   loss {row['loss']:.4f}"
        )
    machine_ratio = statistics.median(machine_ratios)
    print(f"matrix products alone, two processes: {machine_ratio:.2f} x those of one")
    if options.record:
        about = {"config": options.config, "updates": options.updates, "turns": options.turns}
        about["machine_ratio"] = machine_ratio
        write_json(RECORD, {**about, "rows": rows, "environment": environment})


def count_products(num_processes):
    """How many matrix products that many processes, of one thread each, make in the same few seconds."""
    dtype = "bfloat16" if cpu_multiplies_bf16() else "float32"
    arguments = [str(time.time() + 5.0), str(PRODUCTS_S), dtype]  # both have started by then
    processes = [
        subprocess.Popen([sys.executable, "-c", PRODUCTS, *arguments], stdout=subprocess.PIPE, text=True)
        for _ in range(num_processes)
    ]
    return sum(int(process.communicate()[0]) for process in processes)


def train(num_processes, num_threads, options):
    """The first updates of a configuration; tokens a second, memory, the last window's loss."""
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
        command += [argument for key, value in settings.items() for argument in ("--set", f"{key}={value}")]
        with (Path(folder) / "log").open("w+") as log:
            environment = {**os.environ, "OMP_NUM_THREADS": str(num_threads)}
            process = subprocess.Popen(command, stderr=log, env=environment)
            peak_bytes = 0
            seen_at = time.monotonic()
            while process.poll() is None:
                time.sleep(0.1)
                if time.monotonic() - seen_at > SAMPLE_EVERY_S:
                    peak_bytes = max(peak_bytes, resident_bytes(process.pid))
                    seen_at = time.monotonic()
            if process.returncode:
                log.seek(0)
                raise SystemExit(f"{command}: exit {process.returncode}\n{log.read()}")
        lines = map(json.loads, (run_dir / "metrics.jsonl").read_text(encoding="utf-8").splitlines())
        windows = [line for line in lines if line["event"] == "train"]
    speed = statistics.median(window["tokens_per_s"] for window in windows[1:])
    return {"tokens_per_s": speed, "peak_mib": peak_bytes / 2**20, "loss": windows[-1]["loss"]}


def parse():
    """The command line."""
    parser = argparse.ArgumentParser(prog="scripts/bench_processes", description=__doc__)
    parser.add_argument("--config", default="multi30k")
    parser.add_argument("--updates", type=int, default=60)
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--record", action="store_true", help="write docs/speed/processes.json")
    return parser.parse_args()


if __name__ == "__main__":
    main()
