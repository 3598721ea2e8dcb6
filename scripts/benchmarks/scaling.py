#!/usr/bin/env python3
"""How the cost of training grows: with the number of pairs, and with the source's length.

    .venv/bin/python scripts/bench_scaling [--quick] [--record]

Time per target token should not depend on how many pairs there are (what an epoch prepares is divided by its tokens),
and should rise in a straight line with the source's length: additive attention looks at every position at every step.
`--record` writes docs/speed/scaling.json. One thread.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch

from seq2seq_attn.config import BatchConfig, Config, load_config
from seq2seq_attn.data.batch import collate
from seq2seq_attn.data.store import IdStore, PairStore
from seq2seq_attn.runtime.environment import describe_environment
from seq2seq_attn.files import write_json
from seq2seq_attn.model.build import build_model
from seq2seq_attn.train.batches import EpochBatches, UpdateBatches
from seq2seq_attn.runtime.precision import training_precision
from seq2seq_attn.train.update import Updater

RECORD = Path(__file__).resolve().parent.parent / "docs" / "speed" / "scaling.json"
NUM_IDS = 2_000
TARGET_LENGTH = 19  # 20 steps with EOS
SOURCE_LENGTHS = (9, 19, 39, 79, 159)


def main() -> int:
    """Measure, print, record."""
    options = parse_options()
    torch.set_num_threads(1)
    config = load_config(["quickstart"])
    num_updates, sizes = (6, (10**3, 10**4)) if options.quick else (40, (10**4, 10**5, 10**6))
    by_pairs = cost_by_pairs(config, sizes, num_updates)
    by_length = cost_by_source_length(config, num_updates)
    spread = max(row["us_per_token"] for row in by_pairs) / min(row["us_per_token"] for row in by_pairs) - 1
    line = fit_line(by_length)
    environment = describe_environment([Path(sys.argv[0]).name, *sys.argv[1:]], "cpu")
    print(f"{environment['device_name']}, 1 thread, torch {torch.__version__}, {environment['written_at']}\n")
    for row in by_pairs:
        cost, order_s = row["us_per_token"], row["epoch_s"]
        print(f"{row['pairs']:>9,} pairs: {cost:.1f} us a target token, {order_s:.2f} s for an epoch's order")
    print(f"largest / smallest - 1: {100 * spread:.1f} %\n")
    for row in by_length:
        print(f"source of {row['source_positions']:>4} positions: {row['us_per_token']:.1f} us a target token")
    print(f"line: {line['intercept']:.1f} + {line['slope']:.3f} S us; largest distance {100 * line['error']:.1f} %")
    if options.record:
        value = {"name": "scaling", "by_pairs": by_pairs, "spread": spread, "by_source_length": by_length, "line": line}
        write_json(RECORD, {**value, "environment": environment})
    return 0


def cost_by_pairs(config: Config, sizes: tuple[int, ...], num_updates: int) -> list[dict[str, Any]]:
    """Median time of an update's target token, with the share of what an epoch prepares, by the number of pairs; the
    corpora take turns, so that a noisy machine slows all alike."""
    with tempfile.TemporaryDirectory() as folder:
        stores = {size: random_pairs(Path(folder) / str(size), size) for size in sizes}
        epochs, order_s = {}, {}
        for size, pairs in stores.items():
            began_at = time.perf_counter()
            epochs[size] = EpochBatches(pairs, BatchConfig(size=64), seed=1, epoch=0)
            order_s[size] = time.perf_counter() - began_at
        updaters = {size: build_updater(config) for size in sizes}
        streams = {size: epoch.updates(0) for size, epoch in epochs.items()}
        costs: dict[int, list[float]] = {size: [] for size in sizes}
        for update in range(num_updates):
            for size in sizes:
                batches = next(streams[size])
                costs[size].append(timed_update(updaters[size], batches, update))
        for stream in streams.values():
            stream.close()
        rows = []
        for size, pairs in stores.items():
            num_tokens = int((pairs.target_lengths + 1).sum())
            # batches differ in length, and the first compile: the median is of tokens, not of updates
            us = 1e6 * (statistics.median(costs[size]) + order_s[size] / num_tokens)
            rows.append({"pairs": size, "us_per_token": us, "epoch_s": order_s[size]})
        return rows


def cost_by_source_length(config: Config, num_updates: int) -> list[dict[str, Any]]:
    """Median time of a target token, for sources of one length each."""
    updater = build_updater(config)
    generator = np.random.default_rng(1)
    batches = {}
    for length in SOURCE_LENGTHS:
        source = generator.integers(4, NUM_IDS, (64, length))
        target = generator.integers(4, NUM_IDS, (64, TARGET_LENGTH))
        batch = collate(list(source), list(target), range(64))
        batches[length] = UpdateBatches([batch], [list(range(64))], batch.num_tokens)
    costs: dict[int, list[float]] = {length: [] for length in SOURCE_LENGTHS}
    for update in range(num_updates):
        for length in SOURCE_LENGTHS:
            costs[length].append(timed_update(updater, batches[length], update))
    return [
        {"source_positions": length + 1, "us_per_token": 1e6 * statistics.median(of_length[1:])}
        for length, of_length in costs.items()
    ]


def fit_line(rows: list[dict[str, Any]]) -> dict[str, float]:
    """Least squares through cost and length, and the largest relative distance of a point from the line."""
    x = np.array([row["source_positions"] for row in rows], dtype=float)
    y = np.array([row["us_per_token"] for row in rows])
    slope, intercept = np.polyfit(x, y, 1)
    error = np.abs(intercept + slope * x - y) / y
    return {"slope": float(slope), "intercept": float(intercept), "error": float(error.max())}


def random_pairs(folder: Path, num_pairs: int) -> PairStore:
    """Pairs of random ids, 5 to 20 tokens a side, about as long as each other."""
    generator = np.random.default_rng(num_pairs)
    source = generator.integers(5, 21, num_pairs)
    target = np.clip(source + generator.integers(-2, 3, num_pairs), 3, None)
    for name, lengths in (("source", source), ("target", target)):
        IdStore.write(folder / name, generator.integers(4, NUM_IDS, int(lengths.sum())), lengths)
    return PairStore(IdStore(folder / "source"), IdStore(folder / "target"))


def build_updater(config: Config) -> Updater:
    """A model of the configuration's sizes, ready to learn."""
    torch.manual_seed(1)
    device = torch.device("cpu")
    model = build_model(config.model, num_source_ids=NUM_IDS, num_target_ids=NUM_IDS)
    return Updater(model, config.train, device=device, precision=training_precision("auto", device))


def timed_update(updater: Updater, batches: UpdateBatches, update: int) -> float:
    """Seconds a target token."""
    began_at = time.perf_counter()
    result = updater.train_step(batches, update=update, learning_rate=1e-3, teacher_forcing_ratio=1.0)
    return (time.perf_counter() - began_at) / result.num_tokens


def parse_options() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(prog="scripts/bench_scaling", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small corpora, few updates")
    parser.add_argument("--record", action="store_true")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
