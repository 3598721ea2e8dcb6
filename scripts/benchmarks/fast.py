"""Measure the gain of each piece of speed code: it is switched off, in turns with everything on."""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from seq2seq_attn.config import load_config
from seq2seq_attn.data.batch import Batch, collate, collate_source
from seq2seq_attn.model import dropout, embedding, speed
from seq2seq_attn.model.build import build_model
from seq2seq_attn.model.fast import aligned, product, unroll
from seq2seq_attn.runtime.environment import describe_environment
from seq2seq_attn.runtime.memory import TRAINING_PRIMITIVES, keep_primitives, reuse_large_blocks
from seq2seq_attn.runtime.precision import multiplies_bf16
from seq2seq_attn.search.beam import beam_search
from seq2seq_attn.search.greedy import greedy_search
from seq2seq_attn.search.options import SearchOptions
from seq2seq_attn.search.steps import step_model
from seq2seq_attn.train.loss import batch_loss
from seq2seq_attn.train.optim import build_optimizer

RECORD = Path(__file__).resolve().parents[2] / "docs" / "speed" / "fast.json"
NUM_TYPES = {"quickstart": 800, "multi30k": 8_000, "tutorial": 5_893}
CPU = torch.device("cpu")
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


def aligned_to(multiple: int) -> Way:
    """Rows of logits that begin at multiples of a number."""
    return lambda: replaced((aligned, "COLUMN_MULTIPLE", multiple))


IN_TRAINING: dict[str, Way] = {
    "hand-written unroll": lambda: speed.without(["unroll"]),
    "batched recurrence of the encoder": lambda: speed.without(["recurrence"]),
    "loss that makes its own gradient": lambda: speed.without(["cross_entropy"]),
    "all of these": speed.plain,
    "logits cached for the loss": lambda: replaced((unroll, "MAX_CACHED_CELLS", 0)),
    "aligned rows of logits": aligned_to(1),
    "own dropout generator": lambda: replaced(
        *((module, "keep_factors", drawn_by_torch) for module in (dropout, embedding, unroll))
    ),
}
IN_SEARCH: dict[str, Way] = {
    "prepared steps": lambda: speed.without(["steps"]),
    "packed products": lambda: replaced((product, "_has_packed_layout", lambda dtype: False)),
}


def sentences(count: int, num_types: int, generator: torch.Generator) -> list[list[int]]:
    """Random sentences of Multi30k's lengths."""
    lengths = torch.randint(8, 20, (count,), generator=generator).tolist()
    return [torch.randint(4, num_types, (length,), generator=generator).tolist() for length in lengths]


def training(name: str, precision: str) -> dict[str, Callable[[], None]]:
    """Two updates: with everything on, and without each piece."""
    config, num_types = load_config([name]), NUM_TYPES[name]
    generator = torch.Generator().manual_seed(1)
    batches: list[Batch] = []
    for _ in range(4):
        source, target = (sentences(config.train.batch.size, num_types, generator) for _ in range(2))
        batches.append(collate(source, target, range(len(source))))
    model = build_model(config.model, num_source_ids=num_types, num_target_ids=num_types)
    optimizer = build_optimizer(model, config.train.optimizer)
    ratio = config.train.teacher_forcing.start
    position = iter(range(10**9))

    def updates(way: Way) -> None:
        for _ in range(2):
            with way():
                with torch.autocast("cpu", dtype=torch.bfloat16, enabled=precision == "bf16"):
                    loss = batch_loss(model, batches[next(position) % 4], teacher_forcing_ratio=ratio)
                (loss.loss_sum / loss.num_tokens).backward()
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)

    ways: dict[str, Way] = {"everything on": lambda: speed.without([]), **IN_TRAINING}
    if ratio == 1.0:
        del ways["logits cached for the loss"]
    return {what: lambda way=way: updates(way) for what, way in ways.items()}  # type: ignore[misc]


def searching(name: str, beam_size: int) -> dict[str, Callable[[], None]]:
    """64 sentences, 14 steps each."""
    model = build_model(load_config([name]).model, num_source_ids=NUM_TYPES[name], num_target_ids=NUM_TYPES[name])
    source = collate_source(sentences(64, NUM_TYPES[name], torch.Generator().manual_seed(1)))
    found = {}
    for what, way in {"everything on": lambda: speed.without([]), **IN_SEARCH}.items():
        with torch.inference_mode(), way():
            steps = step_model(model.eval())

        def search(steps: Any = steps) -> None:
            if beam_size == 1:
                greedy_search(steps, source, max_lengths_B=[14] * 64)
            else:
                beam_search(steps, source, SearchOptions(beam_size=beam_size), max_lengths_B=[14] * 64)

        found[what] = search
    return found


def gains(runs: dict[str, Callable[[], None]], num_turns: int) -> dict[str, float]:
    """Speed with everything on over speed without each piece: medians of paired turns, in CPU time."""
    times: dict[str, list[float]] = {what: [] for what in runs}
    for turn in range(num_turns + 2):  # the first two warm up
        order = list(runs) if turn % 2 else list(reversed(runs))
        for what in order:
            began_at = time.process_time()
            runs[what]()
            times[what].append(time.process_time() - began_at)
    base = times.pop("everything on")[2:]
    return {
        what: round(statistics.median(one / on for one, on in zip(of_what[2:], base, strict=True)), 3)
        for what, of_what in times.items()
    }


def main() -> None:
    """Measure, print, record."""
    parser = argparse.ArgumentParser(prog="scripts/bench_fast", description=__doc__)
    parser.add_argument("--turns", type=int, default=9)
    parser.add_argument("--configs", default=",".join(NUM_TYPES), help="what to train, of " + ", ".join(NUM_TYPES))
    parser.add_argument("--record", action="store_true", help=f"write {RECORD.name} for docs/speed")
    options = parser.parse_args()
    torch.set_num_threads(1)
    keep_primitives(TRAINING_PRIMITIVES)
    reuse_large_blocks()
    precisions = ["fp32", "bf16"] if multiplies_bf16(CPU) else ["fp32"]
    rows: dict[str, dict[str, float]] = {}
    for name in options.configs.split(","):
        for precision in precisions:
            rows[f"training {name}, {precision}"] = gains(training(name, precision), options.turns)
            print(name, precision, rows[f"training {name}, {precision}"], flush=True)
    for beam_size, label in ((1, "greedy"), (5, "beam 5")):
        rows[f"translating multi30k, {label}, fp32"] = gains(searching("multi30k", beam_size), options.turns)
        print(label, rows[f"translating multi30k, {label}, fp32"], flush=True)
    if options.record:
        record = {"turns": options.turns, "rows": rows, "environment": describe_environment(sys.argv, CPU)}
        RECORD.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
