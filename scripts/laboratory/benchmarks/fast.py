"""Measure the gain of each piece of speed code: it is switched off, in turns with everything on.

One thread, CPU time.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import torch
from torch import Tensor

from scripts.benchmarks.pages import publish
from scripts.laboratory.benchmarks.search import searcher
from scripts.laboratory.benchmarks.train_work import Sizes, run_update, updates_over
from scripts.harness.records import describe, exit_code
from scripts.harness.turns import Contestant, Ratio, paired_ratio, precisions, take_turns
from seq2seq_attn.config import load_config
from seq2seq_attn.data.batch import collate
from seq2seq_attn.model import dropout, embedding, speed
from seq2seq_attn.model.build import build_model
from seq2seq_attn.model.fast import cross_entropy, product
from seq2seq_attn.runtime.memory import TRAINING_PRIMITIVES, keep_primitives, reuse_large_blocks
from seq2seq_attn.runtime.precision import Precision
from seq2seq_attn.search.steps import step_model

NUM_TYPES = {"quickstart": 1_933, "multi30k": 3_964, "tutorial": 5_893}
"""target types of the prepared corpora: no multiples of 64"""
FAST = "fast"
RECORDED = (FAST, "fast-again")
"""the second is of another machine"""
CPU = torch.device("cpu")
BASE = "everything on"
Way = Callable[[], AbstractContextManager[Any]]


@contextmanager
def replaced(*attributes: tuple[Any, str, Any]) -> Iterator[None]:
    """Module attributes with other values inside the block."""
    before = [(module, name, getattr(module, name)) for module, name, _ in attributes]
    for module, name, value in attributes:
        setattr(module, name, value)
    try:
        yield
    finally:
        for module, name, value in before:
            setattr(module, name, value)


def drawn_by_torch(shape: tuple[int, ...], rate: float, device: torch.device, dtype: Any = None) -> Tensor:
    """Dropout's factors by `bernoulli_`."""
    return torch.empty(shape, device=device, dtype=dtype).bernoulli_(1.0 - rate).div_(1.0 - rate)


IN_TRAINING: dict[str, Way] = {
    "hand-written unroll": lambda: speed.without(["unroll"]),
    "batched recurrence of the encoder": lambda: speed.without(["recurrence"]),
    "loss that makes its own gradient": lambda: speed.without(["cross_entropy"]),
    "all of these": speed.plain,
    "aligned rows of logits": lambda: replaced((cross_entropy, "COLUMN_MULTIPLE", 1)),
    "own dropout generator": lambda: replaced(
        *((module, "dropout_mask", drawn_by_torch) for module in (dropout, embedding))
    ),
}
IN_SEARCH: dict[str, Way] = {
    "prepared steps": lambda: speed.without(["steps"]),
    "packed products": lambda: replaced((product, "_has_packed_layout", lambda dtype: False)),
}


def main() -> None:
    """Measure, print, record."""
    options = parse()
    torch.set_num_threads(1)
    keep_primitives(TRAINING_PRIMITIVES)
    reuse_large_blocks()
    rows: dict[str, dict[str, float]] = {}

    def measure(row: str, ways: Mapping[str, Callable[[int], float]]) -> None:
        found = gains(ways, options.turns)
        rows[row] = {what: round(ratio.value, 3) for what, ratio in found.items()}
        print(row + "".join(f"\n  {what:36}{ratio}" for what, ratio in found.items()), flush=True)

    for name in options.configs:
        for precision in precisions(CPU):
            measure(f"training {name}, {precision}", training(name, precision))
    for output in ("output/softmax", "output/lexical"):
        for beam_size, label in ((1, "greedy"), (5, "beam 5")):
            measure(f"translating multi30k with {output}, {label}, fp32", searching(beam_size, output))
    record = {"turns": options.turns, "rows": rows, "environment": describe("bench_fast")}
    publish(options.record or FAST, record, save=bool(options.record))


def sentences(count: int, num_types: int, generator: torch.Generator) -> list[list[int]]:
    """Random sentences of Multi30k's lengths."""
    lengths = torch.randint(8, 20, (count,), generator=generator).tolist()
    return [torch.randint(4, num_types, (length,), generator=generator).tolist() for length in lengths]


def training(name: str, precision: Precision) -> dict[str, Callable[[int], float]]:
    """An update with everything on, and without each piece."""
    config, num_types = load_config([name]), NUM_TYPES[name]
    generator = torch.Generator().manual_seed(1)
    batches = []
    for _ in range(4):
        source, target = (sentences(config.train.batch.size, num_types, generator) for _ in range(2))
        batches.append(collate(source, target, range(len(source))))
    ratio = config.train.teacher_forcing.start
    update = updates_over(batches, run_update(config, Sizes(num_types, num_types), precision, ratio, CPU))

    def without(way: Way) -> Callable[[int], float]:
        def work(number: int) -> float:
            with way():
                return update(number)

        return work

    return {BASE: update, **{what: without(way) for what, way in IN_TRAINING.items()}}


def searching(beam_size: int, overlay: str) -> dict[str, Callable[[int], float]]:
    """A batch of 64 sentences, in a fixed number of steps."""
    config, num_types = load_config(["multi30k", overlay]), NUM_TYPES["multi30k"]
    model = build_model(config.model, num_source_ids=num_types, num_target_ids=num_types)
    source = sentences(64, num_types, torch.Generator().manual_seed(1))

    def without(way: Way) -> Callable[[int], float]:
        with torch.inference_mode(), way():
            translate = searcher(step_model(model.eval()), beam_size, len(source), CPU)

        def work(_: int) -> float:
            translate(source)
            return len(source)

        return work

    return {BASE: without(lambda: speed.without([])), **{what: without(way) for what, way in IN_SEARCH.items()}}


def gains(ways: Mapping[str, Callable[[int], float]], num_turns: int) -> dict[str, Ratio]:
    """Speed with everything on over speed without each piece, from paired turns, in CPU time."""
    contestants = {what: Contestant(what, work, clock=time.process_time) for what, work in ways.items()}
    take_turns(list(contestants.values()), num_turns, warm_up=2)
    base = contestants.pop(BASE)
    return {what: paired_ratio(base.speeds, one.speeds) for what, one in contestants.items()}


def parse() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(prog="scripts/bench_fast", description=__doc__)
    parser.add_argument("--turns", type=int, default=9)
    parser.add_argument("--configs", nargs="+", choices=NUM_TYPES, default=list(NUM_TYPES), help="default: all")
    parser.add_argument("--record", nargs="?", const=FAST, choices=RECORDED, help="write docs/speed/NAME.json (fast)")
    options = parser.parse_args()
    if options.record and {*options.configs} != {*NUM_TYPES}:
        parser.error(f"--record: a record has all of {', '.join(NUM_TYPES)}; leave out --configs or --record")
    return options


if __name__ == "__main__":
    sys.exit(exit_code(main))
