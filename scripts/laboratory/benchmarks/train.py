"""Training speed at the function of the PyTorch attention tutorial: its own loop, written anew here, against ours."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path

import torch

from scripts.laboratory.benchmarks import work
from scripts.laboratory.benchmarks.measure import CPU, build_parser, publish, toy_settings
from scripts.laboratory.harness.records import Record, describe, ratio_fields
from scripts.laboratory.harness.turns import Contestant, precisions, ratios_to, take_turns
from seq2seq_attn.config import Config, load_config
from seq2seq_attn.data.batch import Batch
from seq2seq_attn.model import speed
from seq2seq_attn.runtime.memory import keep_primitives, reuse_large_blocks
from seq2seq_attn.runtime.precision import Precision

TEACHER_FORCING = 0.5


def main(arguments: Sequence[str]) -> None:
    """Time, compare, print, record."""
    options = build_parser("train", __doc__).parse_args(arguments)
    keep_primitives(4_096)  # what these batches need
    reuse_large_blocks()  # as `seq2seq train` does; it helps the tutorial's loops too
    torch.set_num_threads(1)
    torch.manual_seed(1)
    with tempfile.TemporaryDirectory() as folder:
        toy = toy_settings(Path(folder)) if options.quick else []
        record = measure(load_config(["tutorial"], toy), 1 if options.quick else 8)
    publish(record, options.record)


def measure(config: Config, num_batches: int) -> Record:
    """Updates in paired turns."""
    batches, sizes = work.make_batches(config, num_batches)
    contestants = make_contestants(config, sizes, batches)
    # the warm-up has all batches: oneDNN compiles for each new shape, and most shapes of a run are not new
    take_turns(contestants, num_batches, warm_up=num_batches)
    rows = [
        {"name": one.name, "tokens_per_s": one.speed, **ratio_fields(ratios_to(one, contestants[:2]))}
        for one in contestants
    ]
    return {
        "options": {"config": config.name, "threads": 1, "batches": num_batches, "teacher_forcing": TEACHER_FORCING},
        "rows": rows,
        "differences": {name: work.gradient_difference(config, sizes, name) for name in precisions(CPU)},
        "environment": describe("lab"),
    }


def make_contestants(config: Config, sizes: work.Sizes, batches: dict[str, list[Batch]]) -> list[Contestant]:
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
