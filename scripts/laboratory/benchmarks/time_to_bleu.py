"""Minutes of training until the validation set is translated at given BLEU (cased, greedy), and the peak memory.

The training run stops once the last target is reached. The clock is the run's own: it counts updates, validations and
checkpoints, not the preparation of the data.
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

from scripts.benchmarks.pages import publish
from scripts.laboratory.benchmarks.training_course import read_events, summarize
from scripts.laboratory.harness.records import add_set_option, describe, exit_code, set_arguments
from seq2seq_attn.errors import UserError
from seq2seq_attn.files import read_json

POLL_S = 1.0


def main() -> int:
    """Train, watch, report; 1 if a target was not reached."""
    options = parse_options()
    targets = [float(target) for target in options.targets.split(",")]
    with tempfile.TemporaryDirectory() as folder:
        run_dir = Path(folder) / "run"
        peak_mib = train_until(options, run_dir, max(targets))
        events = read_events(run_dir)
        threads = read_json(run_dir / "environment.json")["num_threads"]
    found = summarize(events, targets)
    about = {"config": options.config, "settings": options.set, "threads": threads}
    record = {**about, **found, "peak_mib": peak_mib, "environment": describe("time_to_bleu")}
    publish("time-to-bleu", record, save=options.record)
    return 1 if None in found["minutes_to_bleu"].values() else 0


def train_until(options: argparse.Namespace, run_dir: Path, target: float) -> float:
    """Run the training until a validation reaches the target; its peak resident memory in MiB."""
    command = [sys.executable, "-m", "seq2seq_attn", "train", "-c", options.config, "--run-dir", str(run_dir)]
    threads = [f"train.num_threads={options.threads}"] if options.threads else []
    command += set_arguments([*options.set, *threads])
    environment = {**os.environ, **({"OMP_NUM_THREADS": str(options.threads)} if options.threads else {})}
    process = subprocess.Popen(command, env=environment)
    stopped = False
    while True:
        pid, status, usage = os.wait4(process.pid, os.WNOHANG)
        if pid:
            code = os.waitstatus_to_exitcode(status)
            if code not in (0, 143):
                raise UserError(f"the training run failed with exit code {code}")
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
    add_set_option(parser)
    parser.add_argument("--record", action="store_true", help="write docs/speed/time-to-bleu.json")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(exit_code(main))
