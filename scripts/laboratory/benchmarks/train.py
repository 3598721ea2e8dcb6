"""Training speed at the function of the PyTorch attention tutorial: its own loop, written anew here, against ours."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import torch

from scripts.laboratory.benchmarks import work
from scripts.laboratory.benchmarks.measure import CPU, build_parser, publish, toy_settings
from scripts.laboratory.harness.records import Record
from scripts.laboratory.harness.turns import Contestant, precisions, ratio_fields, take_turns
from seq2seq_attn.config import Config, load_config
from seq2seq_attn.data.batch import Batch
from seq2seq_attn.model import speed
from seq2seq_attn.runtime.memory import keep_primitives, reuse_large_blocks
from seq2seq_attn.runtime.precision import Precision, allow_tf32

TEACHER_FORCING = {"tutorial": 0.5, "multi30k": 1.0}


class Amount(NamedTuple):
    """How many batches a function is measured on, and how often."""

    batches: int = 8
    rounds: int = 1
    warm_up_rounds: int = 1


QUICK = Amount(batches=1)


def main(arguments: Sequence[str]) -> None:
    """Time, compare, print, record."""
    options = build_parser("train", __doc__).parse_args(arguments)
    keep_primitives(4_096)  # what these batches need
    reuse_large_blocks()  # as `seq2seq train` does; it helps the tutorial's loops too
    torch.set_num_threads(1)
    torch.manual_seed(1)
    with tempfile.TemporaryDirectory() as folder:
        toy = toy_settings(Path(folder)) if options.quick else []
        record = measure(load_config(["tutorial"], toy), QUICK if options.quick else Amount())
    publish(record, options.record)


def measure(config: Config, amount: Amount, device: torch.device = CPU, *, cuda_graphs: bool = False) -> Record:
    """Updates in paired turns, with a fixed teacher forcing; the tutorial's loops only at the tutorial's function."""
    is_tutorial, ratio = config.name == "tutorial", TEACHER_FORCING[config.name]
    batches, sizes = work.make_batches(config, amount.batches)
    contestants = work.tutorial_contestants(config, sizes, batches, ratio, device) if is_tutorial else []
    contestants += our_contestants(config, sizes, batches[work.BUCKETED], device, cuda_graphs=cuda_graphs)
    num_turns = amount.rounds * amount.batches
    # the warm-up has all batches: oneDNN compiles for each new shape, and most shapes of a run are not new
    take_turns(contestants, num_turns, warm_up=amount.warm_up_rounds * amount.batches)
    bases = contestants[: 2 if is_tutorial else 1]
    options = {"config": config.name, "threads": torch.get_num_threads(), "batches": num_turns}
    compared = precisions(device) if is_tutorial else []
    return {
        "options": {**options, "batch_size": config.train.batch.size, "teacher_forcing": ratio},
        "rows": [{"name": one.name, "tokens_per_s": one.speed, **ratio_fields(one, bases)} for one in contestants],
        "differences": {name: work.gradient_difference(config, sizes, name, device) for name in compared},
    }


def our_contestants(
    config: Config, sizes: work.Sizes, batches: list[Batch], device: torch.device, *, cuda_graphs: bool
) -> list[Contestant]:
    """Ours without fast paths, with them, with teacher forcing 1, and with CUDA graphs."""

    def ours(
        name: str, precision: Precision, ratio: float, *, off: Sequence[str] = (), cuda_graphs: bool = False
    ) -> Contestant:
        updater = work.our_updater(config, sizes, precision, device, cuda_graphs=cuda_graphs)
        update = work.updates_over(batches, work.our_update(updater, ratio, off=off))

        def turn(number: int) -> float:
            allow_tf32(precision, device)  # as `seq2seq train` does
            try:
                return update(number)
            finally:
                torch.set_float32_matmul_precision("highest")

        return Contestant(f"ours, {name}, {precision}", turn, device=device)

    ratio, names = TEACHER_FORCING[config.name], precisions(device)
    return [
        *(ours("plain loop", name, ratio, off=speed.names()) for name in names),
        *(ours("fast", name, ratio) for name in names),
        *(ours("fast, teacher forcing 1", name, 1.0) for name in names if ratio < 1.0),
        *(ours("plain loop, CUDA graphs", n, ratio, off=speed.names(), cuda_graphs=True) for n in names if cuda_graphs),
        *(ours("fast, CUDA graphs", name, ratio, cuda_graphs=True) for name in names if cuda_graphs),
    ]
