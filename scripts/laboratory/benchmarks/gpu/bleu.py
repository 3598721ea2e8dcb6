"""Blocks `bleu` and `bleu-eager`: `seq2seq train` until the validation set is translated at given BLEU.

A block that runs out of time stops the training run, which saves its state; the same command goes on with it.
"""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

from scripts.laboratory.benchmarks.gpu.corpus import TINY_MODELS, data_settings
from scripts.laboratory.benchmarks.gpu.plan import Budget, Settings, child_environment, write_record
from scripts.laboratory.benchmarks.training_course import read_events, summarize
from scripts.laboratory.harness.records import ROOT, Record, set_arguments
from seq2seq_attn.train.checkpoint import has_state

TARGETS = [35.0, 40.0]
TOY_TARGETS = [0.0, 1000.0]
TOY = [*TINY_MODELS["multi30k"], "train.batch.size=16", "train.max_epochs=2", "train.log_every_updates=2"]
STOPPED = (143, -signal.SIGTERM)
"""Exit codes after SIGTERM: once training has begun, and before."""
POLL_S = 1.0
SAVING_S = 20.0
"""Left of a block's time for the training run to save its state."""


def run(name: str, settings: Settings, budget: Budget) -> bool:
    """Train, or go on, for as long as the block may; True once the last target is reached or the run has finished."""
    targets = TOY_TARGETS if settings.is_rehearsal else TARGETS
    run_dir, samples = settings.work / name / "run", settings.work / name / "utilization.txt"
    command = train_command(name, settings, run_dir, samples)
    code = train(command, settings, budget, run_dir, samples, targets[-1])
    if code not in (0, *STOPPED):
        print(f"the training run failed with exit code {code}; {run_dir}/train.log says more", file=sys.stderr)
        return False
    events = read_events(run_dir)
    found = summarize(events, targets)
    is_finished = code == 0 or found["minutes_to_bleu"][f"{targets[-1]:g}"] is not None
    validation_s = sum(event["seconds"] for event in events if event["event"] == "validation")
    elapsed_s = events[-1]["elapsed_s"] if events else 0.0
    share = validation_s / elapsed_s if elapsed_s else 0.0
    values = {"config": "multi30k", "cuda_graphs": name == "bleu", **found, **utilization(samples)}
    values |= {"validation_share": share, "minutes": elapsed_s / 60}
    write_record(settings, name, is_finished=is_finished, values=values)
    if not is_finished:
        print(f"not finished: `scripts/gpu {name}` continues", file=sys.stderr)
    return is_finished


def train_command(name: str, settings: Settings, run_dir: Path, samples: Path) -> list[str]:
    """Go on where a state was saved; otherwise begin, without what a killed process left behind."""
    command = [sys.executable, "-m", "seq2seq_attn", "train", "--run-dir", str(run_dir)]
    if has_state(run_dir / "last") and not (run_dir / "finished.json").is_file():
        return [*command, "--resume"]
    shutil.rmtree(run_dir, ignore_errors=True)
    samples.unlink(missing_ok=True)
    samples.parent.mkdir(parents=True, exist_ok=True)
    overrides = [*data_settings(settings), *(TOY if settings.is_rehearsal else [])]
    overrides += [f"train.device={settings.device}", f"train.cuda_graphs={str(name == 'bleu').lower()}"]
    return [*command, "-c", "multi30k", *set_arguments(overrides)]


def train(command: list[str], settings: Settings, budget: Budget, run_dir: Path, samples: Path, target: float) -> int:
    """Run the command until a validation reaches the target or the time is over; its exit code (143: stopped)."""
    process = subprocess.Popen(command, cwd=ROOT, env=child_environment())
    is_stopped = False
    while process.poll() is None:
        if settings.device == "cuda":
            sample_utilization(samples)
        is_reached = any(event.get("bleu", -1.0) >= target for event in read_events(run_dir))
        if has_state(run_dir / "last") and not is_stopped and (is_reached or budget.left_s < SAVING_S):
            process.send_signal(signal.SIGTERM)
            is_stopped = True
        time.sleep(POLL_S)
    return process.returncode


def sample_utilization(path: Path) -> None:
    """Add a line with the GPU's utilization in percent and its used MiB; nothing where nvidia-smi does not answer."""
    command = ["nvidia-smi", "--query-gpu=utilization.gpu,memory.used", "--format=csv,noheader,nounits", "--id=0"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=10)
    except (OSError, subprocess.SubprocessError):
        return
    with path.open("a", encoding="utf-8") as stream:
        stream.write(done.stdout.strip().splitlines()[0] + "\n")


def utilization(path: Path) -> Record:
    """The mean utilization between 0 and 1 and the most memory of all samples; None where there are none."""
    rows = []
    for line in path.read_text(encoding="utf-8").splitlines() if path.is_file() else []:
        parts = [part.strip() for part in line.split(",")]
        if len(parts) == 2 and all(part.isdecimal() for part in parts):
            rows.append((int(parts[0]), int(parts[1])))
    if not rows:
        return {"utilization": None, "peak_mib": None}
    return {"utilization": sum(row[0] for row in rows) / len(rows) / 100, "peak_mib": max(row[1] for row in rows)}
