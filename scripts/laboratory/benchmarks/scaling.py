"""The growth of the cost of training with the number of pairs and with the length of the source; one thread.

Time per target token should not depend on the number of pairs (the preparation of an epoch is divided by its tokens),
and should rise in a straight line with the length of the source: additive attention looks at every position at every
step.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack, closing
from pathlib import Path

import numpy as np
import torch

from scripts.laboratory.benchmarks.measure import CPU, build_parser, publish
from scripts.laboratory.benchmarks.train import Sizes, our_update, our_updater, updates_over
from scripts.laboratory.harness.records import Record
from scripts.laboratory.harness.turns import Contestant, take_turns
from seq2seq_attn.config import BatchConfig, Config, load_config
from seq2seq_attn.data.batch import collate
from seq2seq_attn.data.sequences import SequenceStore, SequenceWriter
from seq2seq_attn.data.store import PairStore
from seq2seq_attn.runtime.precision import training_precision
from seq2seq_attn.train.batches import EpochBatches

SIZES = Sizes(2_000, 2_000)
BATCH_SIZE = 64
TARGET_LENGTH = 19  # 20 steps with EOS
SOURCE_LENGTHS = (9, 19, 39, 79, 159)


def main(arguments: Sequence[str]) -> None:
    options = build_parser("scaling", __doc__).parse_args(arguments)
    torch.set_num_threads(1)
    config = load_config(["quickstart"])
    num_updates, sizes = (2, (130, 260)) if options.quick else (40, (10**4, 10**5, 10**6))
    by_pairs = cost_by_pairs(config, sizes, num_updates)
    by_length = cost_by_source_length(config, num_updates)
    costs = [row["us_per_token"] for row in by_pairs]
    record = {"by_pairs": by_pairs, "spread": max(costs) / min(costs) - 1, "by_source_length": by_length}
    publish({**record, "line": fit_line(by_length)}, options.record)


def cost_by_pairs(config: Config, sizes: Sequence[int], num_updates: int) -> list[Record]:
    """Median time per target token of an update, with its share of the preparation of an epoch, by number of pairs."""
    contestants, rows = [], []
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        for size in sizes:
            pairs = random_pairs(Path(folder) / str(size), size)
            began_at = time.perf_counter()
            epoch = EpochBatches(pairs, BatchConfig(size=BATCH_SIZE), seed=1, epoch=0)
            rows.append({"pairs": size, "epoch_s": time.perf_counter() - began_at})
            rows[-1]["epoch_tokens"] = int((pairs.target_lengths + 1).sum())
            updates = stack.enter_context(closing(epoch.updates(0)))
            updater = our_updater(config, SIZES, training_precision("auto", CPU))

            def work(number: int, updates=updates, updater=updater) -> float:  # type: ignore[no-untyped-def]
                options = {"update": number, "learning_rate": 1e-3, "teacher_forcing_ratio": 1.0}
                return float(updater.train_step(next(updates), **options).num_tokens)

            contestants.append(Contestant(str(size), work))
        take_turns(contestants, num_updates)
    for row, contestant in zip(rows, contestants, strict=True):
        # the median over updates: batches differ in length, and the first compile
        row["us_per_token"] = 1e6 * (1 / contestant.speed + row["epoch_s"] / row.pop("epoch_tokens"))
    return rows


def cost_by_source_length(config: Config, num_updates: int) -> list[Record]:
    """Median time per target token, for sources of a single length each."""
    update = our_update(our_updater(config, SIZES, training_precision("auto", CPU)), 1.0)
    generator = np.random.default_rng(1)
    contestants = []
    for length in SOURCE_LENGTHS:
        source, target = (
            list(generator.integers(4, num_ids, (BATCH_SIZE, num_tokens)))
            for num_ids, num_tokens in zip(SIZES, (length, TARGET_LENGTH), strict=True)
        )
        batch = collate(source, target, range(BATCH_SIZE))
        contestants.append(Contestant(str(length + 1), updates_over([batch], update)))
    take_turns(contestants, num_updates, warm_up=1)
    return [{"source_positions": int(one.name), "us_per_token": 1e6 / one.speed} for one in contestants]


def fit_line(rows: Sequence[Record]) -> dict[str, float]:
    """Least squares through cost and length, and the largest relative distance of a point from the line."""
    x, y = (np.array([row[key] for row in rows], dtype=float) for key in ("source_positions", "us_per_token"))
    slope, intercept = np.polyfit(x, y, 1)
    error = np.abs(intercept + slope * x - y) / y
    return {"slope": float(slope), "intercept": float(intercept), "error": float(error.max())}


def random_pairs(folder: Path, num_pairs: int) -> PairStore:
    """Pairs of random ids, 5 to 20 tokens per side, about as long as each other."""
    generator = np.random.default_rng(num_pairs)
    source = generator.integers(5, 21, num_pairs)
    target = np.clip(source + generator.integers(-2, 3, num_pairs), 3, None)
    folder.mkdir()
    for name, lengths in (("source", source), ("target", target)):
        SequenceWriter(folder / name).add(generator.integers(4, SIZES.num_source_ids, int(lengths.sum())), lengths)
    return PairStore(SequenceStore(folder / "source"), SequenceStore(folder / "target"))
