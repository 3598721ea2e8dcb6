"""Block `training`: target tokens per second, at the tutorial's function and at the sizes of `multi30k`."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import torch

from scripts.laboratory.benchmarks.gpu import bounds
from scripts.laboratory.benchmarks.gpu.corpus import data_settings, model_config
from scripts.laboratory.benchmarks.gpu.plan import Budget, Settings, write_record
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
from scripts.laboratory.harness.records import Record, ratio_fields
from scripts.laboratory.harness.turns import Contestant, ratios_to, take_turns
from seq2seq_attn.config import Config, load_config
from seq2seq_attn.data.batch import Batch
from seq2seq_attn.runtime.precision import Precision

PRECISIONS = ("fp32", "tf32", "bf16")
TEACHER_FORCING = {"tutorial": 0.5, "multi30k": 1.0}


class Size(NamedTuple):
    """How much is measured."""

    num_batches: int
    warm_up: int
    """rounds that do not count; a graph is recorded when a shape comes for the second time"""
    rounds: int
    profiled: int
    peaks: dict[str, int]


FULL = Size(8, 3, 10, 5, {"size": 8192, "num_bytes": 1 << 30, "repeats": 20})
TINY = Size(1, 1, 1, 1, {"size": 64, "num_bytes": 1 << 16, "repeats": 2})


def run(name: str, settings: Settings, budget: Budget) -> bool:
    """Measure both functions, each in half of the time."""
    size = TINY if settings.is_rehearsal else FULL
    device = torch.device(settings.device)
    peaks = bounds.peaks(device, **size.peaks)
    functions = []
    for config_name, share in (("tutorial", 0.5), ("multi30k", 1.0)):
        functions.append(measure(config_name, settings, size, peaks, budget.share(share)))
    write_record(settings, name, is_finished=True, values={"peaks": peaks, "functions": functions})
    return True


def measure(config_name: str, settings: Settings, size: Size, peaks: dict[str, float], budget: Budget) -> Record:
    """Every way to train a configuration's function, in paired turns over the same batches."""
    device, ratio = torch.device(settings.device), TEACHER_FORCING[config_name]
    config = load_config([config_name])
    config.model = model_config(config_name, settings)
    config.data = load_config(["multi30k"], data_settings(settings)).data  # the same tokens for all
    batches, sizes = make_batches(config, size.num_batches)
    flops = flops_per_token(config.model, sizes, batches[BUCKETED])
    contestants = make_contestants(config, sizes, batches, device, ratio)
    num_turns, until = size.rounds * size.num_batches, budget.share(0.8)  # a fifth of the time is for profiling
    take_turns(contestants, num_turns, warm_up=size.warm_up * size.num_batches, is_over=lambda: until.left_s == 0.0)
    base = contestants[:2] if config_name == "tutorial" else contestants[:1]
    rows = [
        {
            "name": contestant.name,
            "tokens_per_s": contestant.speed,
            "flop_share": contestant.speed * flops / peaks[contestant.precision],
            **ratio_fields(ratios_to(contestant, base)),
        }
        for contestant in contestants
    ]
    for row, contestant in zip(rows, contestants, strict=True):  # last, as it takes turns too
        found = bounds.profile(partial(contestant.turn, 0), device, size.profiled) if budget.left_s > 20.0 else None
        row["profile"] = None if found is None else found._asdict()
        row["bound"] = bounds.explain(found, flop_share=row["flop_share"])
    differences = differences_of(config, sizes, device) if config_name == "tutorial" else {}
    about = {"config": config_name, "teacher_forcing": ratio, "batch_size": config.train.batch.size}
    about |= {"turns": len(contestants[0].speeds), "flops_per_token": flops, "sizes": sizes._asdict()}
    return {**about, "rows": rows, "differences": differences}


class Timed(Contestant):
    """A contestant whose float32 products run in a precision of its own."""

    def __init__(self, name: str, work: Callable[[int], float], precision: str, device: torch.device) -> None:
        super().__init__(name, work, device=device)
        self.precision = precision

    def turn(self, number: int) -> None:
        """One turn, in its precision."""
        # beside bf16 training allows TF32 for what is left of float32 products
        with bounds.matmul_precision("highest" if self.precision == "fp32" else "high"):
            super().turn(number)


def make_contestants(
    config: Config, sizes: Sizes, batches: dict[str, list[Batch]], device: torch.device, ratio: float
) -> list[Timed]:
    """The tutorial's loops, where the function is theirs; ours, eager and with graphs, in each precision."""
    found = []
    if config.name == "tutorial":
        for kind in (RANDOM, BUCKETED):
            update = tutorial_update(config, sizes, kind == BUCKETED, ratio, device)
            found.append(Timed(f"tutorial, {kind}", updates_over(batches[kind], update), "fp32", device))
    for way, cuda_graphs in (("eager", False), ("graphs", True)):
        for precision in PRECISIONS:
            autocast: Precision = "bf16" if precision == "bf16" else "fp32"
            update = run_update(config, sizes, autocast, ratio, device, cuda_graphs=cuda_graphs)
            found.append(Timed(f"ours, {way}, {precision}", updates_over(batches[BUCKETED], update), precision, device))
    return found


def differences_of(config: Config, sizes: Sizes, device: torch.device) -> Record:
    """Relative differences of loss and gradients to the tutorial's own model, on the device."""
    found = {}
    for precision in PRECISIONS:
        autocast: Precision = "bf16" if precision == "bf16" else "fp32"
        with bounds.matmul_precision("highest" if precision == "fp32" else "high"):
            found[precision] = gradient_differences(config, sizes, [autocast], device)[autocast]
    return found
