#!/usr/bin/env python3
"""Minutes of training until the validation set is translated at given BLEU (cased, greedy), and the peak memory.

    .venv/bin/python scripts/time_to_bleu [--config NAME] [--targets 30,35] [--threads N] [--set K=V]... [--record]

The training stops once the last target is reached; `--record` writes docs/speed/time-to-bleu.json. The clock is the
run's own: it counts updates, validations and checkpoints, not the preparation of the data.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "scripts" / "lib"))

from training_course import read_events, summarize  # noqa: E402

from seq2seq_attn.files import write_json  # noqa: E402
from seq2seq_attn.runtime.environment import describe_environment  # noqa: E402

RECORD = ROOT / "docs" / "speed" / "time-to-bleu.json"
POLL_S = 1.0


def main() -> int:
    """Train, watch, report; 1 where a target was not reached."""
    options = parse_options()
    targets = [float(target) for target in options.targets.split(",")]
    with tempfile.TemporaryDirectory() as folder:
        run_dir = Path(folder) / "run"
        peak_mib = train_until(options, run_dir, max(targets))
        events = read_events(run_dir)
    found = summarize(events, targets)
    threads = options.threads or os.cpu_count()
    environment = describe_environment([Path(sys.argv[0]).name, *sys.argv[1:]], "cpu")
    print(f"{options.config}, {threads} threads, {environment['device_name']}, {environment['written_at']}")
    for target, minutes in found["minutes_to_bleu"].items():
        print(f"BLEU {target} after {'never' if minutes is None else f'{minutes:.1f} min'}")
    print(f"{found['tokens_per_s']:,.0f} target tokens/s (median), peak {peak_mib:,.0f} MiB")
    if options.record:
        value = {"name": "time-to-bleu", "config": options.config, "settings": options.settings, "threads": threads}
        write_json(RECORD, {**value, **found, "peak_mib": peak_mib, "environment": environment})
    return 1 if None in found["minutes_to_bleu"].values() else 0


def train_until(options: argparse.Namespace, run_dir: Path, target: float) -> float:
    """Run the training until a validation reaches the target; its peak resident memory in MiB."""
    command = [sys.executable, "-m", "seq2seq_attn", "train", "-c", options.config, "--run-dir", str(run_dir)]
    settings = [*options.settings, *([f"train.num_threads={options.threads}"] if options.threads else [])]
    command += [argument for setting in settings for argument in ("--set", setting)]
    environment = {**os.environ, **({"OMP_NUM_THREADS": str(options.threads)} if options.threads else {})}
    process = subprocess.Popen(command, env=environment)
    stopped = False
    while True:
        pid, status, usage = os.wait4(process.pid, os.WNOHANG)
        if pid:
            code = os.waitstatus_to_exitcode(status)
            if code not in (0, 143):
                raise SystemExit(f"the training failed with exit code {code}")
            return usage.ru_maxrss / 1024
        if not stopped and any(event.get("bleu", 0.0) >= target for event in read_events(run_dir)):
            process.send_signal(signal.SIGTERM)
            stopped = True
        time.sleep(POLL_S)


def parse_options() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(prog="scripts/time_to_bleu", description=__doc__)
    parser.add_argument("--config", default="multi30k")
    parser.add_argument("--targets", default="30,35", help="BLEU scores, separated by commas")
    parser.add_argument("--threads", type=int, default=None, help="CPU threads; default: torch's")
    parser.add_argument("--set", dest="settings", action="append", default=[], metavar="KEY=VALUE")
    parser.add_argument("--record", action="store_true")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
