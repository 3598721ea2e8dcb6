"""Training speed of mechanisms relative to the baseline's: the same batches in paired turns, one
thread, CPU time."""

import argparse
import time
from collections.abc import Sequence

import torch

from scripts.laboratory.benchmarks.measure import CPU
from scripts.laboratory.benchmarks.train import (
    BUCKETED,
    make_batches,
    our_update,
    our_updater,
    updates_over,
)
from scripts.laboratory.experiment import load_experiment
from scripts.laboratory.harness.records import Record, describe
from scripts.laboratory.harness.turns import Contestant, paired_ratio, take_turns
from seq2seq_attn.files import read_json, write_json
from seq2seq_attn.runtime.device import training_precision
from seq2seq_attn.runtime.memory import reuse_large_blocks

NUM_TURNS = 9


def main(arguments: Sequence[str]) -> None:
    """Measure the named arms of the experiment `mechanisms`, print, and keep the speed in their
    records."""
    experiment = load_experiment("mechanisms")
    parser = argparse.ArgumentParser(prog="scripts/lab bench mechanisms", description=__doc__)
    parser.add_argument(
        "arms", nargs="+", choices=experiment.arms, metavar="ARM", help="of scripts/lab list"
    )
    parser.add_argument(
        "--record", action="store_true", help=f"keep it in the arm's record in {experiment.record}"
    )
    options = parser.parse_args(arguments)
    torch.set_num_threads(1)
    reuse_large_blocks()
    precision = training_precision("auto", CPU)
    for name in options.arms:
        contestants = []
        for arm in (experiment.baseline, name):
            config = experiment.run(arm, 1).config
            batches, sizes = make_batches(config, NUM_TURNS)
            update = our_update(our_updater(config, sizes, precision), 1.0)
            contestants.append(
                Contestant(arm, updates_over(batches[BUCKETED], update), clock=time.process_time)
            )
        take_turns(contestants, NUM_TURNS, warm_up=2)
        baseline, mechanism = contestants
        value, low, high = paired_ratio(mechanism.speeds, baseline.speeds)
        speed: Record = {
            "ratio": round(value, 3),
            "low": round(low, 3),
            "high": round(high, 3),
            "turns": NUM_TURNS,
            "ms_per_1000_tokens": round(1e6 / mechanism.speed, 1),
            "precision": precision,
        }
        print(f"{name}, relative to {experiment.baseline}: {speed}", flush=True)
        if options.record:
            path = experiment.arm_path(name)
            speed["environment"] = describe("scripts/lab")
            write_json(path, {**read_json(path), "speed": speed})
