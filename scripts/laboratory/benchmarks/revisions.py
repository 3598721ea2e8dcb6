"""Speed of this checkout against an older commit, through the commands alone.

Measured are training, greedy and beam search, and the start of `translate`.

Each turn runs the same command in both checkouts, one after the other. Seconds are CPU seconds of whole processes.
Training is the difference between a long and a short run, and search the difference between a file and one sentence:
start, preparation and validation cancel out.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from scripts.benchmarks.pages import publish
from scripts.harness.records import ROOT, Record, describe, exit_code, ratio_fields, set_arguments
from scripts.harness.turns import Ratio, median_interval, precisions
from seq2seq_attn.data.prepare import prepare_corpus
from seq2seq_attn.errors import UserError
from seq2seq_attn.files import write_lines
from seq2seq_attn.run_dir import RunDir

SHORT, LONG = 10, 50
"""updates of the short and the long training run"""
SENTENCE = "Ein Hund rennt über die Wiese ."


def main() -> None:
    """Check out the older commit, take turns, print, record."""
    options = parse()
    with tempfile.TemporaryDirectory() as folder:
        base = Path(folder) / "base"
        subprocess.run(["git", "-C", str(ROOT), "worktree", "add", "--detach", base, options.base], check=True)
        try:
            record = measure(base, Path(folder), options)
        finally:
            subprocess.run(["git", "-C", str(ROOT), "worktree", "remove", "--force", base], check=True)
    publish("revisions", record, save=options.record)


def measure(base: Path, folder: Path, options: argparse.Namespace) -> Record:
    """The ratios of all kinds of work: CPU seconds of the older commit divided by those of this one."""
    lines = folder / "lines"
    source = prepare_corpus(RunDir(options.run).config()).text("valid")[0][: options.lines]
    write_lines(lines, source)
    checkouts = (base, ROOT)
    for checkout in checkouts:
        train_seconds(checkout, folder, "fp32", 1)  # prepares the data
    kinds = kinds_of_work(folder, lines, options.run)
    seconds: dict[str, list[tuple[float, float]]] = {kind: [] for kind in kinds}
    for turn in range(options.turns):
        for kind, work in kinds.items():
            found = {checkout: work(checkout) for checkout in (checkouts if turn % 2 == 0 else checkouts[::-1])}
            seconds[kind].append((found[base], found[ROOT]))
    ratios: dict[str, Ratio] = {
        kind: median_interval(old / new for old, new in pairs) for kind, pairs in seconds.items()
    }
    return {
        "base": options.base,
        "turns": options.turns,
        **ratio_fields(ratios),
        "seconds": seconds,
        "environment": describe("bench_revisions"),
    }


def kinds_of_work(folder: Path, lines: Path, run: Path) -> dict[str, Callable[[Path], float]]:
    """CPU seconds of each kind of work in a checkout."""
    translate = ["translate", "--run", str(run), "--device", "cpu"]

    def start(checkout: Path) -> float:
        return cpu_seconds(checkout, [*translate, SENTENCE])

    def train(checkout: Path, precision: str) -> float:
        return train_seconds(checkout, folder, precision, LONG) - train_seconds(checkout, folder, precision, SHORT)

    def search(checkout: Path, beam_size: int) -> float:
        files = ["-i", str(lines), "-o", str(folder / "out")]
        return cpu_seconds(checkout, [*translate, "--beam-size", str(beam_size), *files]) - start(checkout)

    return {
        **{f"training, {precision}": partial(train, precision=precision) for precision in precisions("cpu")},
        "start of translate": start,
        "greedy search": partial(search, beam_size=1),
        "beam search": partial(search, beam_size=5),
    }


def train_seconds(checkout: Path, folder: Path, precision: str, num_updates: int) -> float:
    """CPU seconds of `seq2seq train -c multi30k`, including start, preparation and validation."""
    settings = [f"train.max_updates={num_updates}", "train.num_threads=1", "train.validation.metric=perplexity"]
    command = ["train", "-c", "multi30k", "--precision", precision, "--device", "cpu", "--overwrite"]
    return cpu_seconds(checkout, [*command, *set_arguments(settings), "--run-dir", str(folder / "run")])


def cpu_seconds(checkout: Path, arguments: Sequence[str]) -> float:
    """User and system seconds of one command, on one thread; its failure ends the measurement."""
    environment = os.environ | {"PYTHONPATH": str(checkout), "OMP_NUM_THREADS": "1"}
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    command = [sys.executable, "-W", "ignore", "-m", "seq2seq_attn", *arguments]
    done = subprocess.run(command, cwd=checkout, env=environment, capture_output=True, text=True)
    if done.returncode:
        raise UserError(f"{' '.join(arguments)}, in {checkout}:\n{done.stderr}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def absolute(path: str) -> Path:
    """The path from the root: both checkouts read it."""
    return Path(path).resolve()


def parse() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(prog="scripts/bench_revisions", description=__doc__)
    parser.add_argument("base", metavar="COMMIT", help="the older commit")
    parser.add_argument("--run", type=absolute, required=True, help="a run directory that both versions can load")
    parser.add_argument("--turns", type=int, default=6)
    parser.add_argument("--lines", type=int, default=400, help="of the run's validation set, to translate")
    parser.add_argument("--record", action="store_true", help="write docs/speed/revisions.json")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(exit_code(main))
