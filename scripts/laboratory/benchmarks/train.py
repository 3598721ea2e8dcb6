"""Training speed at the function of the PyTorch attention tutorial: its own loop, written anew here, against ours."""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import torch

from scripts.laboratory.benchmarks import work
from scripts.laboratory.benchmarks.measure import CPU, build_parser, publish, toy_settings
from scripts.laboratory.harness.records import Record, describe, ratio_fields
from scripts.laboratory.harness.turns import Contestant, left_out, precisions, ratios_to, take_turns
from seq2seq_attn.config import Config, load_config
from seq2seq_attn.data.batch import Batch
from seq2seq_attn.model import speed
from seq2seq_attn.runtime.memory import keep_primitives, reuse_large_blocks
from seq2seq_attn.runtime.precision import DTYPES, Precision

TUTORIAL = "tutorial"
TEACHER_FORCING = 0.5
PEAK_SHAPE = (1_920, 1_792, 5_893)
"""rows, inputs and outputs of the readout's product over all steps"""


def main(arguments: Sequence[str]) -> None:
    """Time, compare, print, record."""
    parser = build_parser("train", __doc__)
    parser.add_argument("--cores", action="store_true", help="ours only, one thread against two")
    parser.add_argument("--config", default=TUTORIAL, help="another function, with --cores (default: tutorial)")
    options = parser.parse_args(arguments)
    if options.config != TUTORIAL and not options.cores:
        parser.error(f"--config {options.config}: the tutorial's loop computes its own function only; add --cores")
    keep_primitives(4_096)  # what these batches need
    reuse_large_blocks()  # as `seq2seq train` does; it helps the tutorial's loops too
    torch.set_num_threads(1)
    torch.manual_seed(1)
    with tempfile.TemporaryDirectory() as folder:
        toy = toy_settings(Path(folder)) if options.quick else []
        record = measure(load_config([options.config], toy), options.cores, 1 if options.quick else 8)
    publish(record, options.record)


def measure(config: Config, cores: bool, num_batches: int) -> Record:
    """Updates in paired turns; the peak of the matrix products is measured anew before each turn."""
    batches, sizes = work.make_batches(config, num_batches)
    contestants = (core_contestants if cores else tutorial_against_ours)(config, sizes, batches)
    threads = [1, 2] if cores else [1]
    peaks: dict[str, list[float]] = {}

    def measure_peaks() -> None:
        for num_threads in threads:
            torch.set_num_threads(num_threads)
            for precision in precisions(CPU):
                name = with_threads(precision, num_threads) if cores else precision
                peaks.setdefault(name, []).append(gemm_peak(DTYPES.get(precision, torch.float32)))

    # the warm-up has all batches: oneDNN compiles for each new shape, and most shapes of a run are not new
    take_turns(contestants, num_batches, warm_up=num_batches, before_turn=measure_peaks)
    flops = work.flops_per_token(config.model, sizes, batches[work.BUCKETED])
    options = {"config": config.name, "cores": threads if cores else [], "threads": 1, "batches": num_batches}
    return {
        "options": {**options, "teacher_forcing": TEACHER_FORCING},
        "gemm_peak": {name: statistics.median(values) for name, values in peaks.items()},
        "flops_per_token": flops,
        "left_out": left_out(CPU),
        "rows": [speed_row(contestant, contestants[:2], peaks, flops) for contestant in contestants],
        "differences": (
            {name: work.gradient_difference(config, sizes, name) for name in precisions(CPU)}
            if config.name == TUTORIAL
            else {}
        ),
        "environment": describe("lab"),
    }


def with_threads(precision: str, num_threads: int) -> str:
    """The key of a peak, and the end of the names of the contestants that are held against it."""
    return f"{precision}, {num_threads} thread{'s' * (num_threads != 1)}"


def gemm_peak(dtype: torch.dtype) -> float:
    """FLOP per second of the readout's product over all steps, the best of four: the most this machine can do.

    The result's rows begin at multiples of 64 numbers: into 5,893 packed ones, products in fp32 are a third slower.
    """
    num_rows, num_inputs, num_outputs = PEAK_SHAPE
    a, b = (torch.randn(rows, num_inputs, dtype=dtype) for rows in (num_rows, num_outputs))
    result = torch.empty(num_rows, num_outputs + -num_outputs % 64, dtype=dtype)[:, :num_outputs]
    times = []
    for _ in range(4):
        began_at = time.perf_counter()
        torch.mm(a, b.t(), out=result)
        times.append(time.perf_counter() - began_at)
    return 2.0 * num_rows * num_inputs * num_outputs / min(times)


def core_contestants(config: Config, sizes: work.Sizes, batches: dict[str, list[Batch]]) -> list[Contestant]:
    """Ours with one thread and with two."""
    updates = {}
    for name in precisions(CPU):
        update = work.our_update(work.our_updater(config, sizes, name), TEACHER_FORCING)
        updates[name] = work.updates_over(batches[work.BUCKETED], update)
    return [
        Contestant(f"ours, fast, {with_threads(name, num_threads)}", update, num_threads=num_threads)
        for num_threads in (1, 2)
        for name, update in updates.items()
    ]


def tutorial_against_ours(config: Config, sizes: work.Sizes, batches: dict[str, list[Batch]]) -> list[Contestant]:
    """The tutorial's loops; ours without fast paths, with them, and with teacher forcing 1."""

    def ours(name: str, precision: Precision, ratio: float, off: Sequence[str] = ()) -> Contestant:
        update = work.our_update(work.our_updater(config, sizes, precision), ratio, off=off)
        return Contestant(f"ours, {name}, {precision}", work.updates_over(batches[work.BUCKETED], update))

    return [
        *work.tutorial_contestants(config, sizes, batches, TEACHER_FORCING),
        *(ours("plain loop", name, TEACHER_FORCING, speed.names()) for name in precisions(CPU)),
        *(ours("fast", name, TEACHER_FORCING) for name in precisions(CPU)),
        *(ours("fast, teacher forcing 1", name, 1.0) for name in precisions(CPU)),
    ]


def speed_row(
    contestant: Contestant, bases: Sequence[Contestant], peaks: dict[str, list[float]], flops: float
) -> Record:
    """A contestant's speed, alone and against the bases and the peak of the matrix products in the same turns."""
    peak = next((values for name, values in peaks.items() if contestant.name.endswith(name)), peaks.get("fp32", []))
    shares = [speed * flops / now for speed, now in zip(contestant.speeds, peak, strict=True)]
    ratios = ratio_fields(ratios_to(contestant, bases))
    name, tokens_per_s = contestant.name, contestant.speed
    return {"name": name, "tokens_per_s": tokens_per_s, "share_of_gemm_peak": statistics.median(shares), **ratios}
