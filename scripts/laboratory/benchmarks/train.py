"""Training speed at the function of the PyTorch attention tutorial: its own loop, written anew here, against ours."""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable, Sequence

import torch

from scripts.benchmarks.pages import publish
from scripts.laboratory.benchmarks.train_work import (
    BUCKETED,
    RANDOM,
    Sizes,
    flops_per_token,
    gradient_differences,
    make_batches,
    run_update,
    tutorial_update,
    updates_over,
)
from scripts.harness.pages import count_of
from scripts.harness.records import Record, describe, exit_code, options_of, ratio_fields
from scripts.harness.turns import Contestant, left_out, paired_ratio, precisions, ratios_to, take_turns
from seq2seq_attn.config import Config, load_config
from seq2seq_attn.data.batch import Batch
from seq2seq_attn.model import speed
from seq2seq_attn.runtime.memory import keep_primitives, reuse_large_blocks
from seq2seq_attn.runtime.precision import DTYPES, Precision

TRAIN, TUTORIAL = "train", "tutorial"
RECORDED = (TRAIN, "cores", "cores-multi30k")
QUICK_S = 60.0
"""of `--quick`, for turns: two minutes less what the corpus and the matrix products take on a slow core"""
CPU = torch.device("cpu")


def main(arguments: Sequence[str] | None = None) -> None:
    """Time, compare, print, record."""
    options = parse(arguments)
    keep_primitives(4_096)  # what these batches need
    reuse_large_blocks()  # as `seq2seq train` does; it helps the tutorial's loops too
    torch.set_num_threads(options.threads)
    torch.manual_seed(1)
    config = load_config([options.config])
    batches, sizes = make_batches(config, options.batches)
    contestants = make_contestants(config, sizes, batches, options)
    if options.quick:
        options.batches = affordable_batches(contestants, options)
    peaks: dict[str, list[float]] = {}

    def measure_peaks() -> None:
        for name, peak in gemm_peaks(options).items():
            peaks.setdefault(name, []).append(peak)

    # the warm-up has all batches: oneDNN compiles for each new shape, and most shapes of a run are not new
    take_turns(contestants, options.batches, warm_up=options.batches, before_turn=measure_peaks)
    flops = flops_per_token(config.model, sizes, batches[BUCKETED])
    is_tutorial = options.config == TUTORIAL
    record = {
        "options": options_of(options),
        "gemm_peak": {name: statistics.median(values) for name, values in peaks.items()},
        "flops_per_token": flops,
        "left_out": left_out(CPU),
        "rows": [row(contestant, contestants[:2], peaks, flops) for contestant in contestants],
        "fed_back": fed_back(contestants, options),
        "differences": gradient_differences(config, sizes, precisions(CPU), CPU) if is_tutorial else {},
        "environment": describe("bench_train"),
    }
    publish(options.record or TRAIN, record, save=bool(options.record))


def affordable_batches(contestants: Sequence[Contestant], options: argparse.Namespace) -> int:
    """How many batches there is time for, on this machine: from a turn of each over the first one."""
    began_at = time.perf_counter()
    for contestant in contestants:
        contestant.turn(0)
    seconds = time.perf_counter() - began_at
    affordable = (QUICK_S - seconds) / (seconds * 2)
    return max(1, min(int(options.batches), int(affordable)))


def gemm_peaks(options: argparse.Namespace) -> dict[str, float]:
    """`gemm_peak` of each precision and number of threads, now: the machine is not always as fast."""
    found = {}
    for num_threads in options.cores or [options.threads]:
        torch.set_num_threads(num_threads)
        for precision in options.precisions:
            dtype = DTYPES.get(precision) or torch.float32
            found[peak_name(precision, num_threads, options)] = gemm_peak(dtype)
    return found


def gemm_peak(dtype: torch.dtype) -> float:
    """FLOP per second of the readout's product over all steps, the best of four: what this machine can do at all.

    The result's rows begin at multiples of 64 numbers: into 5,893 packed ones, products in fp32 are a third slower.
    """
    a, b = (torch.randn(rows, 1_792, dtype=dtype) for rows in (1_920, 5_893))
    result = torch.empty(len(a), 5_952, dtype=dtype)[:, : len(b)]
    times = []
    for _ in range(4):
        began_at = time.perf_counter()
        torch.mm(a, b.t(), out=result)
        times.append(time.perf_counter() - began_at)
    return 2.0 * a.numel() * len(b) / min(times)


def peak_name(precision: str, num_threads: int, options: argparse.Namespace) -> str:
    """The key of a peak, and the end of the names of the contestants that are held against it."""
    return f"{precision}, {count_of(num_threads, 'thread')}" if options.cores else precision


def make_contestants(
    config: Config, sizes: Sizes, batches: dict[str, list[Batch]], options: argparse.Namespace
) -> list[Contestant]:
    """The tutorial's loops and ours; `--quick` leaves out all but the plain and the fast one; `--cores` has the fast
    one with one thread and with two."""
    ratio = options.teacher_forcing

    def ours(precision: Precision, ratio: float, off: Sequence[str] = ()) -> Callable[[int], float]:
        return updates_over(batches[BUCKETED], run_update(config, sizes, precision, ratio, CPU, off=off))

    if options.cores:
        works = {name: ours(name, ratio) for name in options.precisions}
        return [
            Contestant(f"ours, fast, {peak_name(name, num_threads, options)}", work, num_threads=num_threads)
            for num_threads in options.cores
            for name, work in works.items()
        ]
    works = {
        f"ours, {way}, {name}": ours(name, ratio, off)
        for way, off in (("plain loop", speed.names()), ("fast", []))
        for name in options.precisions
    }
    for name in options.precisions if ratio < 1.0 else []:
        works[forced_name(name)] = ours(name, 1.0)
    found = [Contestant(name, work) for name, work in works.items()]
    if options.quick:
        return found
    theirs = {kind: tutorial_update(config, sizes, kind == BUCKETED, ratio, CPU) for kind in (RANDOM, BUCKETED)}
    tutorials = [
        Contestant(f"tutorial, {kind}", updates_over(batches[kind], update)) for kind, update in theirs.items()
    ]
    return tutorials + found


def forced_name(precision: str) -> str:
    """The name of our contestant with teacher forcing 1."""
    return f"ours, fast, teacher forcing 1, {precision}"


def row(contestant: Contestant, bases: Sequence[Contestant], peaks: dict[str, list[float]], flops: float) -> Record:
    """A contestant's speed, alone and against the bases and the peak of the matrix products in the same turns."""
    peak = next((values for name, values in peaks.items() if contestant.name.endswith(name)), None) or peaks["fp32"]
    of_peak = statistics.median(speed * flops / now for speed, now in zip(contestant.speeds, peak, strict=True))
    ratios = ratio_fields(ratios_to(contestant, bases))
    return {"name": contestant.name, "tokens_per_s": contestant.speed, "share_of_gemm_peak": of_peak, **ratios}


def fed_back(contestants: Sequence[Contestant], options: argparse.Namespace) -> dict[str, float]:
    """Precision to the share of the speed at teacher forcing 1 that is left."""
    speeds = {contestant.name: contestant.speeds for contestant in contestants}
    return {
        name: paired_ratio(speeds[f"ours, fast, {name}"], speeds[forced_name(name)]).value
        for name in options.precisions
        if forced_name(name) in speeds
    }


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(prog="scripts/bench_train", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="ours only, within two minutes: at most four batches")
    parser.add_argument("--cores", action="store_true", help="ours only, one thread against two")
    parser.add_argument("--config", default=TUTORIAL, help="another function: with --quick or --cores")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--batches", type=int, default=None)
    parser.add_argument("--teacher-forcing", type=float, default=0.5)
    parser.add_argument("--record", nargs="?", const=TRAIN, choices=RECORDED, help="write docs/speed/NAME.json (train)")
    options = parser.parse_args(arguments)
    if options.quick and options.record:
        parser.error("--quick: its figures are not for the record")
    options.batches = options.batches or (4 if options.quick else 8)
    options.cores = [1, 2] if options.cores else []
    if options.config != TUTORIAL and not (options.quick or options.cores):
        parser.error(f"--config {options.config}: the tutorial's own loop is of one function; add --quick or --cores")
    options.precisions = precisions(CPU)
    return options


if __name__ == "__main__":
    sys.exit(exit_code(main))
