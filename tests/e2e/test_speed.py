"""A speed regression is seen: the fast unroll is not slower than the plain loop (ratios alone, never a time)."""

import runpy
import sys
from pathlib import Path

import pytest
import torch

from seq2seq_attn.config import load_config
from seq2seq_attn.data.batch import collate
from seq2seq_attn.model import speed

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "scripts" / "lib"))

import bench_search
import bench_train
from bench_train import Contestant, our_update
from bench_train_report import paired_ratio

SCRIPTS = Path(__file__).resolve().parents[2] / "scripts"
NUM_TURNS = 9
CPU = torch.device("cpu")


@pytest.mark.parametrize("name", ["additive", "fixed"])
def test_the_fast_paths_keep_up_with_the_plain_one(name):
    config = load_config(["quickstart", f"attention/{name}"])
    generator = torch.Generator().manual_seed(1)
    sentences = [torch.randint(4, 500, (20,), generator=generator).tolist() for _ in range(32)]
    batch = collate(sentences, sentences, range(32))
    sizes = {"num_source_ids": 500, "num_target_ids": 500}
    fast, plain = (
        Contestant(way, [batch], our_update(config, sizes, off, "fp32", 1.0, CPU), CPU)
        for way, off in (("fast", []), ("plain", speed.names()))
    )
    for number in range(NUM_TURNS):
        for contestant in (fast, plain):
            contestant.turn(number)
    assert paired_ratio(fast, plain) > 0.8


def test_the_cost_of_growth_is_measured():
    script = runpy.run_path(str(SCRIPTS / "bench_scaling"))
    config = load_config(["quickstart"])
    by_pairs = script["cost_by_pairs"](config, (130, 260), 2)
    assert [row["pairs"] for row in by_pairs] == [130, 260]
    by_length = script["cost_by_source_length"](config, 2)
    assert all(row["us_per_token"] > 0.0 for row in by_pairs + by_length)
    assert script["fit_line"](by_length)["slope"] > 0.0


def without_bf16(monkeypatch, script):
    monkeypatch.setattr(script, "multiplies_bf16", lambda device: False)


@pytest.mark.parametrize("arguments", [["--quick"], ["--cores"]])
def test_training_speed_leaves_out_bf16_where_it_is_emulated(monkeypatch, arguments):
    without_bf16(monkeypatch, bench_train)
    options = bench_train.parse(arguments)
    config = load_config(["quickstart"])
    batches = {bench_train.BUCKETED: [], bench_train.RANDOM: []}
    sizes = {"num_source_ids": 40, "num_target_ids": 40}
    names = [contestant.name for contestant in bench_train.make_contestants(config, sizes, batches, options)]
    assert any("fp32" in name for name in names)
    assert not any("bf16" in name for name in names)
    assert all("bf16" not in name for name in bench_train.gemm_peaks(options))


def test_translation_speed_leaves_out_bf16_where_it_is_emulated(monkeypatch):
    without_bf16(monkeypatch, bench_search)
    assert bench_search.precisions("cpu") == ["fp32", "int8"]


@pytest.mark.parametrize(("seconds_a_turn", "expected"), [(0.1, 4), (3.0, 2), (20.0, 1)])
def test_quick_takes_as_many_batches_as_two_minutes_allow(monkeypatch, seconds_a_turn, expected):
    clock = [0.0]

    class Slow:
        def turn(self, number):
            clock[0] += seconds_a_turn

    monkeypatch.setattr(bench_train.time, "perf_counter", lambda: clock[0])
    options = bench_train.parse(["--quick"])
    contestants = [Slow() for _ in range(3)]
    assert bench_train.affordable_batches(contestants, options) == expected
