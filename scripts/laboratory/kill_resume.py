"""Kill a training run at random moments, resume it each time, and compare the result with an uninterrupted run.

The moments are drawn from a seed, uniformly over the updates of the run, each delayed by up to one and a half of the
periods between two saves: so they fall into updates, validations and saves and, where two are close, into the start of
a session.
"""

from __future__ import annotations

import argparse
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import torch

from scripts.laboratory.harness.records import RECORDS, Record, add_record_option, describe, read_events, set_arguments
from seq2seq_attn.errors import UserError
from seq2seq_attn.files import write_json
from seq2seq_attn.run_dir import RunDir
from seq2seq_attn.train import checkpoint

RECORD = RECORDS / "kill-resume.json"
EVERY = 3
SETTINGS = [
    # all that a resume has to carry: averages, schedules of both kinds, accumulation, sampled tokens, dropout
    "data.limit={train: 800, valid: 32, test: 8}",
    "data.tokenizer={name: sentencepiece, vocab_size: 300}",
    "model.embedding_size=32",
    "model.readout_size=32",
    "model.hidden_size=64",
    "model.encoder.hidden_size=32",
    "train.device=cpu",
    "train.max_epochs=8",
    "train.batch={size: 16, accumulate: 2}",
    "train.optimizer.average_decay=0.99",
    "train.teacher_forcing={schedule: linear, start: 1.0, end: 0.5, num_updates: 100}",
    "train.validation.every_updates=25",
    f"train.checkpoint_every_updates={EVERY}",
    "train.log_every_updates=5",
]
CLOCK = {"elapsed_s", "seconds", "tokens_per_s"}


def main(arguments: Sequence[str]) -> int:
    """1 if the resumed run differs from the uninterrupted one."""
    options = parse_options(arguments)
    with tempfile.TemporaryDirectory() as folder:
        whole, killed = Path(folder) / "whole", Path(folder) / "killed"
        settings = [*SETTINGS, f"data.data_dir={folder}/data", f"train.num_threads={options.threads}"]
        duration_s = train(command(whole, settings))
        num_updates = state_of(whole)["update"]
        moments = kill_again_and_again(command(killed, settings), killed, num_updates, options)
        train(command(killed, settings))
        differences = compare(RunDir(killed), RunDir(whole))
    record = {
        "identical": not differences,
        "differences": differences,
        "kills": moments,
        "updates": num_updates,
        "uninterrupted_s": round(duration_s, 1),
        "seed_of_moments": options.seed,
        "settings": SETTINGS,
        "environment": describe("scripts/lab kill-resume"),
    }
    if options.record:
        write_json(options.record, record)
    print(f"{len(moments)} kills, {num_updates} updates: {'identical' if not differences else differences}")
    return int(bool(differences))


def parse_options(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="scripts/lab kill-resume", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--kills", type=int, default=10)
    parser.add_argument("--seed", type=int, default=1, help="seed of the moments at which runs are killed")
    parser.add_argument("--threads", type=int, default=1, help="CPU threads of the run")
    add_record_option(parser, RECORD)
    return parser.parse_args(arguments)


def command(run_dir: Path, settings: list[str]) -> list[str]:
    program = [sys.executable, "-m", "seq2seq_attn", "train", "-c", "quickstart"]
    return [*program, *set_arguments(settings), "--resume", "--run-dir", str(run_dir)]


def train(arguments: list[str]) -> float:
    """Seconds that it took."""
    began_at = time.monotonic()
    done = subprocess.run(arguments, capture_output=True, text=True)
    if done.returncode:
        raise UserError(f"training failed with exit code {done.returncode}:\n{done.stderr}")
    return time.monotonic() - began_at


def kill_again_and_again(
    arguments: list[str], run_dir: Path, num_updates: int, options: argparse.Namespace
) -> list[Record]:
    """Kill one session per drawn moment. Returns when each was killed and its last saved update."""
    generator = random.Random(options.seed)
    targets = sorted(generator.uniform(0.0, 0.97 * num_updates) for _ in range(options.kills))
    moments = []
    for number, target in enumerate(targets, start=1):
        share = generator.uniform(0.0, 1.5)
        began_at = time.monotonic()
        process = subprocess.Popen(arguments, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(share * wait_for_update(process, run_dir, target - EVERY))
        if process.poll() is not None:
            raise UserError(f"session {number} ended before its kill, with exit code {process.returncode}")
        process.send_signal(signal.SIGKILL)
        process.wait()
        after_s = round(time.monotonic() - began_at, 2)
        moments.append({"after_s": after_s, "update_on_disk": state_of(run_dir).get("update")})
        print(f"kill {number}: after {after_s} s, update {moments[-1]['update_on_disk']} on disk", flush=True)
    return moments


def wait_for_update(process: subprocess.Popen[bytes], run_dir: Path, target: float) -> float:
    """Wait until an update is on disk; the seconds between the last two saves (1 where this session made none yet)."""
    period_s, changed_at, update = 1.0, None, state_of(run_dir).get("update", -1)
    while process.poll() is None and update < target:
        time.sleep(0.005)
        now, found = time.monotonic(), state_of(run_dir).get("update", update)
        if found != update:
            period_s = now - changed_at if changed_at is not None else period_s
            update, changed_at = found, now
    return period_s


def state_of(run_dir: Path) -> Record:
    """The counters of the last saved state, which may be a moment old during training; empty before the first save."""
    if not checkpoint.has_state(run_dir / "last"):
        return {}
    try:
        state: Record = checkpoint.read_values(run_dir / "last")["state"]
    except UserError:  # replaced between two reads
        return {}
    return state


def compare(run: RunDir, expected: RunDir) -> list[str]:
    """Differences in the last state (weights, moments, average, generators, counters), the best model and the
    history."""
    last, expected_last = checkpoint.load_state(run.last_dir), checkpoint.load_state(expected.last_dir)
    counters, expected_counters = (
        {key: value for key, value in values["state"].items() if not key.endswith("_s")}
        for _, values in (last, expected_last)
    )
    differences = [] if counters == expected_counters else ["last: counters"]
    pairs = {"last": (last[0], expected_last[0]), "best": (run.load_best(), expected.load_best())}
    for kind, (tensors, expected_tensors) in pairs.items():
        for name in sorted(tensors.keys() | expected_tensors.keys()):
            one, other = tensors.get(name), expected_tensors.get(name)
            if one is None or other is None or not torch.equal(one, other):
                differences.append(f"{kind}: {name}")
    if history(run) != history(expected):
        differences.append("metrics.jsonl")
    return differences


def history(run: RunDir) -> list[Record]:
    return [{key: value for key, value in event.items() if key not in CLOCK} for event in read_events(run.path)]
