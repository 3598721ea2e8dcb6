"""Minutes of training until the validation set is translated at given BLEU (cased, greedy), and the
peak memory.

The training run stops once the last target is reached. The clock is the run's own: it counts
updates, validations and checkpoints, not the preparation of the data.
"""

import resource
import signal
import statistics
import subprocess
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from scripts.laboratory.benchmarks.measure import build_parser, publish, toy_settings
from scripts.laboratory.harness.records import Record, add_set_option, read_events, set_arguments
from scripts.laboratory.harness.runs import SEQ2SEQ
from seq2seq_attn.errors import UserError
from seq2seq_attn.files import read_json
from seq2seq_attn.run import Run

STOPPED = (143, -signal.SIGTERM)
"""exit codes after SIGTERM: once training has begun, and before"""


def main(arguments: Sequence[str]) -> None:
    parser = build_parser("time-to-bleu", __doc__)
    parser.add_argument("--config", default="multi30k")
    parser.add_argument("--targets", default="30,35", help="BLEU scores, separated by commas")
    add_set_option(parser)
    options = parser.parse_args(arguments)
    targets = [0.0] if options.quick else [float(target) for target in options.targets.split(",")]
    with tempfile.TemporaryDirectory() as folder:
        run_dir = Path(folder) / "run"
        toy = toy_settings(Path(folder) / "toy") if options.quick else []
        train = [
            "train",
            "-c",
            options.config,
            "--run-dir",
            str(run_dir),
            *set_arguments([*toy, *options.set]),
        ]
        train_until([*SEQ2SEQ, *train], run_dir, max(targets))
        reached = summarize(read_events(run_dir), targets)
        num_threads = read_json(run_dir / "environment.json")["num_threads"]
    about = {"config": options.config, "settings": options.set, "threads": num_threads}
    peak_mib = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    publish({**about, **reached, "peak_mib": peak_mib}, options.record)


def train_until(command: Sequence[str], run_dir: Path, target: float) -> None:
    """Run a training command until a validation reaches the target; then it saves its state.

    Raises:
        UserError: training failed.
    """
    process = subprocess.Popen(command)
    is_stopped = False
    while process.poll() is None:
        is_reached = any(event.get("bleu", -1.0) >= target for event in read_events(run_dir))
        if is_reached and not is_stopped and Run(run_dir).state_path.exists():
            process.send_signal(signal.SIGTERM)
            is_stopped = True
        time.sleep(1.0)
    if process.returncode not in (0, *STOPPED):
        raise UserError(
            f"training failed with exit code {process.returncode}; {run_dir}/train.log says more"
        )


def summarize(events: Sequence[Record], targets: Sequence[float]) -> Record:
    """When each target was first reached, the course of validation, the speed."""
    validations = [event for event in events if event["event"] == "validation"]
    course = [{"minutes": event["elapsed_s"] / 60, "bleu": event["bleu"]} for event in validations]
    speeds = [event["tokens_per_s"] for event in events if event["event"] == "train"]
    return {
        "minutes_to_bleu": {
            f"{target:g}": next((one["minutes"] for one in course if one["bleu"] >= target), None)
            for target in targets
        },
        "validations": course,
        "signature": validations[0]["signature"] if validations else None,
        "tokens_per_s": statistics.median(speeds) if speeds else 0.0,
    }
