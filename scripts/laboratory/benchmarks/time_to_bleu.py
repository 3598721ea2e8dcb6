"""Minutes of training until the validation set is translated at given BLEU (cased, greedy), and the peak memory.

The training run stops once the last target is reached. The clock is the run's own: it counts updates, validations and
checkpoints, not the preparation of the data.
"""

from __future__ import annotations

import resource
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from scripts.laboratory.benchmarks.measure import build_parser, publish, toy_settings
from scripts.laboratory.harness.records import Record, add_set_option, describe, read_events, set_arguments
from seq2seq_attn.errors import UserError
from seq2seq_attn.files import read_json
from seq2seq_attn.train.checkpoint import has_state

POLL_S = 1.0
SAVING_S = 20.0
"""left of the time for the training run to save its state"""
STOPPED = (143, -signal.SIGTERM)
"""exit codes after SIGTERM: once training has begun, and before"""


def main(arguments: Sequence[str]) -> None:
    """Train, watch, report."""
    parser = build_parser("time-to-bleu", __doc__)
    parser.add_argument("--config", default="multi30k")
    parser.add_argument("--targets", default="30,35", help="BLEU scores, separated by commas")
    add_set_option(parser)
    options = parser.parse_args(arguments)
    targets = [0.0] if options.quick else [float(target) for target in options.targets.split(",")]
    with tempfile.TemporaryDirectory() as folder:
        run_dir = Path(folder) / "run"
        settings = [*(toy_settings(Path(folder) / "toy") if options.quick else []), *options.set]
        train = ["train", "-c", options.config, "--run-dir", str(run_dir), *set_arguments(settings)]
        train_until([sys.executable, "-m", "seq2seq_attn", *train], run_dir, targets[-1])
        events = read_events(run_dir)
        num_threads = read_json(run_dir / "environment.json")["num_threads"]
    about = {"config": options.config, "settings": options.set, "threads": num_threads}
    peak_mib = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    publish(
        {**about, **summarize(events, targets), "peak_mib": peak_mib, "environment": describe("lab")}, options.record
    )


def train_until(
    command: Sequence[str],
    run_dir: Path,
    target: float,
    *,
    left_s: Callable[[], float] = lambda: float("inf"),
) -> bool:
    """Run a training command until a validation reaches the target or the time is over; then it saves its state.

    Returns whether it trained to its end instead.

    Raises:
        UserError: training failed.
    """
    process = subprocess.Popen(command)
    is_stopped = False
    while process.poll() is None:
        is_reached = any(event.get("bleu", -1.0) >= target for event in read_events(run_dir))
        if not is_stopped and has_state(run_dir / "last") and (is_reached or left_s() < SAVING_S):
            process.send_signal(signal.SIGTERM)
            is_stopped = True
        time.sleep(POLL_S)
    if process.returncode not in (0, *STOPPED):
        raise UserError(f"training failed with exit code {process.returncode}; {run_dir}/train.log says more")
    return process.returncode == 0


def summarize(events: Sequence[Record], targets: Sequence[float]) -> Record:
    """When each target was first reached, the course of validation, the speed."""
    validations = [event for event in events if event["event"] == "validation"]
    course = [{"minutes": event["elapsed_s"] / 60, "bleu": event["bleu"]} for event in validations]
    speeds = [event["tokens_per_s"] for event in events if event["event"] == "train"]
    return {
        "minutes_to_bleu": {
            f"{target:g}": next((one["minutes"] for one in course if one["bleu"] >= target), None) for target in targets
        },
        "validations": course,
        "signature": validations[0]["signature"] if validations else None,
        "tokens_per_s": statistics.median(speeds) if speeds else 0.0,
    }
