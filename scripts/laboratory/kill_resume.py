"""Kill a training run at random moments, resume it each time, and compare the result with an uninterrupted run.

The moments are drawn from a seed, uniformly over the updates of the run, each delayed by up to one and a half periods
between two saves. They fall into updates, validations and saves and, where two are close, into the start of a session.
"""

from __future__ import annotations

import argparse
import random
import subprocess
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import torch

from scripts.laboratory.harness.records import RECORDS, Record, describe, read_events, set_arguments
from scripts.laboratory.harness.runs import SEQ2SEQ
from seq2seq_attn.errors import UserError
from seq2seq_attn.files import write_json
from seq2seq_attn.run_dir import RunDir
from seq2seq_attn.train.checkpoint import has_state, load_state, read_values

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
    parser = argparse.ArgumentParser(prog="scripts/lab kill-resume", description=__doc__)
    parser.add_argument("--kills", type=int, default=10, help="default: %(default)s")
    parser.add_argument("--seed", type=int, default=1, help="seed of the moments at which runs are killed")
    parser.add_argument("--threads", type=int, default=1, help="CPU threads of the run")
    parser.add_argument("--record", type=Path, nargs="?", const=RECORD, metavar="FILE", help=f"default: {RECORD}")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder:
        whole, killed = Path(folder) / "whole", Path(folder) / "killed"
        settings = [*SETTINGS, f"data.data_dir={folder}/data", f"train.num_threads={options.threads}"]
        duration_s = train(command(whole, settings))
        num_updates = saved_update(whole)
        generator = random.Random(options.seed)
        moments = sorted(generator.uniform(0.0, 0.97 * num_updates) for _ in range(options.kills))
        delays_s = [generator.uniform(0.0, 1.5) * duration_s * EVERY / num_updates for _ in moments]
        kills = [
            kill(command(killed, settings), killed, moment - EVERY, delay_s)
            for moment, delay_s in zip(moments, delays_s, strict=True)
        ]
        train(command(killed, settings))
        differences = compare(RunDir(killed), RunDir(whole))
    record = {
        "identical": not differences,
        "differences": differences,
        "kills": kills,
        "updates": num_updates,
        "uninterrupted_s": round(duration_s, 1),
        "seed_of_moments": options.seed,
        "settings": SETTINGS,
        "environment": describe("scripts/lab"),
    }
    if options.record:
        write_json(options.record, record)
    print(f"{len(kills)} kills, {num_updates} updates: {'identical' if not differences else differences}")
    return int(bool(differences))


def command(run_dir: Path, settings: list[str]) -> list[str]:
    """Start the run, or continue it."""
    return [*SEQ2SEQ, "train", "-c", "quickstart", *set_arguments(settings), "--resume", "--run-dir", str(run_dir)]


def train(arguments: list[str]) -> float:
    """Train to the end; the seconds that it took."""
    began_at = time.monotonic()
    done = subprocess.run(arguments, capture_output=True, text=True)
    if done.returncode:
        raise UserError(f"training failed with exit code {done.returncode}:\n{done.stderr}")
    return time.monotonic() - began_at


def kill(arguments: list[str], run_dir: Path, update: float, delay_s: float) -> Record:
    """Kill a session some time after an update is on disk."""
    began_at = time.monotonic()
    process = subprocess.Popen(arguments, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while process.poll() is None and saved_update(run_dir) < update:
        time.sleep(0.005)
    time.sleep(delay_s)
    if process.poll() is not None:
        raise UserError(f"a session ended before its kill, with exit code {process.returncode}")
    process.kill()
    process.wait()
    moment = {"after_s": round(time.monotonic() - began_at, 2), "update_on_disk": saved_update(run_dir)}
    print(f"killed after {moment['after_s']} s, update {moment['update_on_disk']} on disk", flush=True)
    return moment


def saved_update(run_dir: Path) -> int:
    """The update of the last saved state, which may be a moment old during training; -1 before the first save."""
    try:
        return int(read_values(run_dir / "last")["state"]["update"]) if has_state(run_dir / "last") else -1
    except UserError:  # replaced between two reads
        return -1


def compare(run: RunDir, expected: RunDir) -> list[str]:
    """Differences in the last state (weights, moments, average, generators, counters), the best model and the
    history."""
    states = [load_state(one.last_dir) for one in (run, expected)]
    counters = [
        {key: value for key, value in values["state"].items() if not key.endswith("_s")} for _, values in states
    ]
    differences = [] if counters[0] == counters[1] else ["last: counters"]
    tensors = {"last": [state[0] for state in states], "best": [run.load_best(), expected.load_best()]}
    for kind, (ours, theirs) in tensors.items():
        same = {name for name in ours.keys() & theirs.keys() if torch.equal(ours[name], theirs[name])}
        differences += [f"{kind}: {name}" for name in sorted((ours.keys() | theirs.keys()) - same)]
    if history(run) != history(expected):
        differences.append("metrics.jsonl")
    return differences


def history(run: RunDir) -> list[Record]:
    """The events of a run without its clock."""
    return [{key: value for key, value in event.items() if key not in CLOCK} for event in read_events(run.path)]
