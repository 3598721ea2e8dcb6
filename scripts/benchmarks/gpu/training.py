"""Block `training`: target tokens a second, at the tutorial's function and at the sizes of `multi30k`."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import bench_train
import torch
from bench_train import BUCKETED, RANDOM, Contestant
from bench_train_report import paired_ratio

from gpu_blocks import bounds
from gpu_blocks.corpus import data_settings, model_config
from gpu_blocks.plan import Budget, Record, Settings, write_record
from seq2seq_attn.config import Config, load_config
from seq2seq_attn.data.batch import Batch
from seq2seq_attn.data.buckets import bucketed_batches
from seq2seq_attn.data.prepare import prepare_corpus

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
    print("peaks: " + ", ".join(f"{key} {value / 1e12:.3g} T/s" for key, value in peaks.items()))
    functions = []
    for config_name, share in (("tutorial", 0.5), ("multi30k", 1.0)):
        functions.append(measure(config_name, settings, size, peaks, budget.share(share)))
        show(functions[-1])
    write_record(settings, name, is_finished=True, values={"peaks": peaks, "functions": functions})
    return True


def measure(config_name: str, settings: Settings, size: Size, peaks: dict[str, float], budget: Budget) -> Record:
    """Every way to train a configuration's function, in paired turns over the same batches."""
    device, ratio = torch.device(settings.device), TEACHER_FORCING[config_name]
    config = load_config([config_name])
    config.model = model_config(config_name, settings)
    config.data = load_config(["multi30k"], data_settings(settings)).data  # the same tokens for all
    batches, sizes = make_batches(config, size.num_batches)
    flops = bench_train.flops_per_token(config.model, sizes, batches[BUCKETED])
    contestants = make_contestants(config, sizes, batches, device, ratio)
    turns = take_turns(contestants, size, budget)
    base = contestants[:2] if config_name == "tutorial" else contestants[:1]
    rows = [
        {
            "name": contestant.name,
            "tokens_per_s": contestant.speed,
            "flop_share": contestant.speed * flops / peaks[contestant.precision],
            "ratios": {other.name: paired_ratio(contestant, other) for other in base},
        }
        for contestant in contestants
    ]
    for row, contestant in zip(rows, contestants, strict=True):  # last, as it takes turns too
        found = bounds.profile(partial(contestant.turn, 0), device, size.profiled) if budget.left_s > 20.0 else None
        row["profile"] = None if found is None else found._asdict()
        row["bound"] = bounds.explain(found, flop_share=row["flop_share"])
    differences = differences_of(config, sizes, device) if config_name == "tutorial" else {}
    about = {"config": config_name, "teacher_forcing": ratio, "batch_size": config.train.batch.size, "turns": turns}
    return {**about, "flops_per_token": flops, "sizes": sizes, "rows": rows, "differences": differences}


def make_batches(config: Config, num_batches: int) -> tuple[dict[str, list[Batch]], dict[str, int]]:
    """Bucketed and random batches of the training split, and the vocabularies' sizes."""
    prepared = prepare_corpus(config)
    pairs = prepared.pairs("train")
    batch_size = min(config.train.batch.size, len(pairs))
    bucketed = bucketed_batches(
        pairs.source_lengths, pairs.target_lengths, size=batch_size, unit="sentences", seed=1, epoch=0
    )
    order = torch.randperm(len(pairs), generator=torch.Generator().manual_seed(1)).tolist()
    random = [order[i * batch_size : (i + 1) * batch_size] for i in range(len(pairs) // batch_size)]
    batches = {BUCKETED: bucketed, RANDOM: random}
    sizes = {"num_source_ids": len(prepared.source_vocab), "num_target_ids": len(prepared.target_vocab)}
    return {kind: [pairs.batch(indices) for indices in found[:num_batches]] for kind, found in batches.items()}, sizes


class Timed(Contestant):  # type: ignore[misc]
    """A contestant whose float32 products run in a precision of its own."""

    def __init__(self, name: str, batches: list[Batch], update: Callable[[Batch], None], precision: str, device: Any):
        super().__init__(name, batches, update, device)
        self.precision = precision

    def turn(self, number: int) -> None:
        """One update, in its precision."""
        # beside bf16 training allows TF32 for what is left of float32 products
        with bounds.matmul_precision("highest" if self.precision == "fp32" else "high"):
            super().turn(number)


def make_contestants(
    config: Config, sizes: dict[str, int], batches: dict[str, list[Batch]], device: torch.device, ratio: float
) -> list[Timed]:
    """The tutorial's loops, where the function is theirs; ours, eager and with graphs, in each precision."""
    found = []
    if config.name == "tutorial":
        for kind in (RANDOM, BUCKETED):
            update = bench_train.tutorial_update(config, sizes, kind == BUCKETED, ratio, device)
            found.append(Timed(f"tutorial, {kind}", batches[kind], update, "fp32", device))
    for way, cuda_graphs in (("eager", False), ("graphs", True)):
        for precision in PRECISIONS:
            autocast = "bf16" if precision == "bf16" else "fp32"
            update = bench_train.run_update(config, sizes, autocast, ratio, device, cuda_graphs=cuda_graphs)
            found.append(Timed(f"ours, {way}, {precision}", batches[BUCKETED], update, precision, device))
    return found


def take_turns(contestants: list[Timed], size: Size, budget: Budget) -> int:
    """Rounds over all batches, while there is time; how many turns of each count. Profiling gets a fifth of it."""
    turns = budget.share(0.8)
    for _ in range(size.warm_up):
        for contestant in contestants:
            for number in range(size.num_batches):
                contestant.turn(number)
    for contestant in contestants:
        contestant.speeds.clear()
    for _ in range(size.rounds):
        for number in range(size.num_batches):
            for contestant in contestants:
                contestant.turn(number)
        if turns.left_s == 0.0:
            break
    return len(contestants[0].speeds)


def differences_of(config: Config, sizes: dict[str, int], device: torch.device) -> Record:
    """Relative differences of loss and gradients to the tutorial's own model, on the device."""
    found = {}
    for precision in PRECISIONS:
        autocast = "bf16" if precision == "bf16" else "fp32"
        with bounds.matmul_precision("highest" if precision == "fp32" else "high"):
            found[precision] = bench_train.gradient_differences(config, sizes, [autocast], device)[autocast]
    return found


def show(function: Record) -> None:
    """The table of a function."""
    print(f"\n{function['config']}, teacher forcing {function['teacher_forcing']}, {function['turns']} paired turns")
    for row in function["rows"]:
        ratios = ", ".join(f"{ratio:.2f} x {name}" for name, ratio in row["ratios"].items())
        print(f"{row['name']:26}{row['tokens_per_s']:>10,.0f} tokens/s   {ratios}\n{'':26}{row['bound']}")
    for precision, found in function["differences"].items():
        print(f"{precision}: loss differs by {found['loss']:.1e}, gradients by {found['gradients']:.1e}")
