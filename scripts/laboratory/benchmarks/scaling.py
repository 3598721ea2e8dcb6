"""How the cost of training grows: with the number of pairs, and with the length of the source.

Time per target token should not depend on the number of pairs (the preparation of an epoch is divided by its tokens),
and should rise in a straight line with the length of the source: additive attention looks at every position at every
step. One thread.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import torch

from scripts.benchmarks.pages import publish
from scripts.laboratory.harness.records import Record, describe, exit_code
from scripts.laboratory.harness.turns import Contestant, take_turns
from seq2seq_attn.config import BatchConfig, Config, load_config
from seq2seq_attn.data.batch import collate
from seq2seq_attn.data.id_store import IdStore
from seq2seq_attn.data.store import PairStore
from seq2seq_attn.model.build import build_model
from seq2seq_attn.runtime.precision import training_precision
from seq2seq_attn.train.batches import EpochBatches, UpdateBatches
from seq2seq_attn.train.update import Updater

NUM_IDS = 2_000
TARGET_LENGTH = 19  # 20 steps with EOS
SOURCE_LENGTHS = (9, 19, 39, 79, 159)


def main() -> None:
    """Measure, print, record."""
    options = parse_options()
    torch.set_num_threads(1)
    config = load_config(["quickstart"])
    num_updates, sizes = (6, (10**3, 10**4)) if options.quick else (40, (10**4, 10**5, 10**6))
    by_pairs = cost_by_pairs(config, sizes, num_updates)
    by_length = cost_by_source_length(config, num_updates)
    spread = max(row["us_per_token"] for row in by_pairs) / min(row["us_per_token"] for row in by_pairs) - 1
    value = {"by_pairs": by_pairs, "spread": spread, "by_source_length": by_length}
    value |= {"line": fit_line(by_length), "environment": describe("bench_scaling")}
    publish("scaling", value, save=options.record)


def cost_by_pairs(config: Config, sizes: tuple[int, ...], num_updates: int) -> list[Record]:
    """Median time per target token of an update, with its share of the preparation of an epoch, by number of pairs."""
    with tempfile.TemporaryDirectory() as folder:
        stores = {size: random_pairs(Path(folder) / str(size), size) for size in sizes}
        epochs, order_s = {}, {}
        for size, pairs in stores.items():
            began_at = time.perf_counter()
            epochs[size] = EpochBatches(pairs, BatchConfig(size=64), seed=1, epoch=0)
            order_s[size] = time.perf_counter() - began_at
        streams = {size: epoch.updates(0) for size, epoch in epochs.items()}
        updaters = {size: build_updater(config) for size in sizes}
        contestants = {
            size: Contestant(str(size), lambda number, size=size: update(updaters[size], next(streams[size]), number))  # type: ignore[misc]
            for size in sizes
        }
        take_turns(list(contestants.values()), num_updates)
        for stream in streams.values():
            stream.close()
        rows = []
        for size, pairs in stores.items():
            num_tokens = int((pairs.target_lengths + 1).sum())
            # the median over updates: batches differ in length, and the first compile
            us = 1e6 * (median_cost(contestants[size].speeds) + order_s[size] / num_tokens)
            rows.append({"pairs": size, "us_per_token": us, "epoch_s": order_s[size]})
        return rows


def cost_by_source_length(config: Config, num_updates: int) -> list[Record]:
    """Median time per target token, for sources of one length each."""
    updater = build_updater(config)
    generator = np.random.default_rng(1)
    contestants = {}
    for length in SOURCE_LENGTHS:
        source = generator.integers(4, NUM_IDS, (64, length))
        target = generator.integers(4, NUM_IDS, (64, TARGET_LENGTH))
        batch = collate(list(source), list(target), range(64))
        batches = UpdateBatches([batch], [list(range(64))], batch.num_tokens)
        contestants[length] = Contestant(
            str(length),
            lambda number, batches=batches: update(updater, batches, number),  # type: ignore[misc]
        )
    take_turns(list(contestants.values()), num_updates)
    return [
        {"source_positions": length + 1, "us_per_token": 1e6 * median_cost(contestant.speeds[1:])}
        for length, contestant in contestants.items()
    ]


def median_cost(speeds: list[float]) -> float:
    """Seconds per token."""
    return statistics.median(1 / speed for speed in speeds)


def fit_line(rows: list[Record]) -> dict[str, float]:
    """Least squares through cost and length, and the largest relative distance of a point from the line."""
    x = np.array([row["source_positions"] for row in rows], dtype=float)
    y = np.array([row["us_per_token"] for row in rows])
    slope, intercept = np.polyfit(x, y, 1)
    error = np.abs(intercept + slope * x - y) / y
    return {"slope": float(slope), "intercept": float(intercept), "error": float(error.max())}


def random_pairs(folder: Path, num_pairs: int) -> PairStore:
    """Pairs of random ids, 5 to 20 tokens per side, about as long as each other."""
    generator = np.random.default_rng(num_pairs)
    source = generator.integers(5, 21, num_pairs)
    target = np.clip(source + generator.integers(-2, 3, num_pairs), 3, None)
    for name, lengths in (("source", source), ("target", target)):
        IdStore.write(folder / name, generator.integers(4, NUM_IDS, int(lengths.sum())), lengths)
    return PairStore(IdStore(folder / "source"), IdStore(folder / "target"))


def build_updater(config: Config) -> Updater:
    """A model of the configuration's sizes, with its optimizer."""
    torch.manual_seed(1)
    device = torch.device("cpu")
    model = build_model(config.model, num_source_ids=NUM_IDS, num_target_ids=NUM_IDS)
    return Updater(model, config.train, device=device, precision=training_precision("auto", device))


def update(updater: Updater, batches: UpdateBatches, number: int) -> float:
    """Make an update; its target tokens."""
    result = updater.train_step(batches, update=number, learning_rate=1e-3, teacher_forcing_ratio=1.0)
    return result.num_tokens


def parse_options() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(prog="scripts/bench_scaling", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small corpora, few updates")
    parser.add_argument("--record", action="store_true", help="write docs/speed/scaling.json")
    options = parser.parse_args()
    if options.quick and options.record:
        parser.error("--quick: its figures are not for the record")
    return options


if __name__ == "__main__":
    sys.exit(exit_code(main))
