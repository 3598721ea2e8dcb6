"""The fast paths are at most a fifth slower than the plain loop, by ratios alone; benchmarks measure what is asked."""

import sys

import pytest
import torch

from scripts.laboratory.benchmarks import cli, fast, prepare, scaling, search, train
from scripts.laboratory.benchmarks.peers import __main__ as peers
from scripts.laboratory.benchmarks.train_work import Sizes, run_update, updates_over
from scripts.laboratory.harness import turns
from scripts.laboratory.harness.turns import Contestant, median_interval, paired_ratio, take_turns
from seq2seq_attn.config import load_config
from seq2seq_attn.data.batch import collate
from seq2seq_attn.errors import UserError
from seq2seq_attn.model import speed

NUM_TURNS = 9
CPU = torch.device("cpu")


@pytest.mark.parametrize("name", ["additive", "fixed"])
def test_the_fast_paths_keep_up_with_the_plain_one(name):
    assert speed.names()
    config = load_config(["quickstart", f"attention/{name}"])
    generator = torch.Generator().manual_seed(1)
    sentences = [torch.randint(4, 500, (20,), generator=generator).tolist() for _ in range(32)]
    batch = collate(sentences, sentences, range(32))
    fast, plain = (
        Contestant(way, updates_over([batch], run_update(config, Sizes(500, 500), "fp32", 1.0, CPU, off=off)))
        for way, off in (("fast", []), ("plain", speed.names()))
    )
    take_turns([fast, plain], NUM_TURNS)
    assert paired_ratio(fast.speeds, plain.speeds).value > 0.8


def test_the_cost_of_growth_is_measured():
    config = load_config(["quickstart"])
    by_pairs = scaling.cost_by_pairs(config, (130, 260), 2)
    assert [row["pairs"] for row in by_pairs] == [130, 260]
    by_length = scaling.cost_by_source_length(config, 2)
    assert all(row["us_per_token"] > 0.0 for row in by_pairs + by_length)


def test_the_line_of_growth_is_that_of_least_squares():
    rows = [{"source_positions": x, "us_per_token": y} for x, y in ((10, 4.0), (20, 5.0), (30, 9.0))]
    found = scaling.fit_line(rows)
    assert (found["slope"], found["intercept"]) == pytest.approx((0.25, 1.0))
    assert found["error"] == pytest.approx(1.0 / 5.0)  # at 20: 6 in place of 5


@pytest.mark.parametrize(
    ("parse", "arguments", "message"),
    [
        (fast.parse, "--configs own-tiny", "'own-tiny'"),
        (fast.parse, "--configs quickstart --record fast", "--record: a record has all of"),
        (fast.parse, "--record other", "'other'"),
        (lambda: train.parse(None), "--quick --record", "--quick: its figures are not for the record"),
        (scaling.parse_options, "--quick --record", "--quick: its figures are not for the record"),
        (peers.parse, "--quick --record", "--quick: its figures are not for the record"),
        (prepare.parse, "--tokenizers characters", "'characters'"),
    ],
)
def test_a_benchmark_refuses_what_it_cannot_measure(monkeypatch, capsys, parse, arguments, message):
    monkeypatch.setattr("sys.argv", ["bench", *arguments.split()])
    with pytest.raises(SystemExit, match="2"):
        parse()
    assert message in capsys.readouterr().err


def test_the_record_of_another_machine_is_asked_for_by_name(monkeypatch):
    monkeypatch.setattr("sys.argv", ["bench", "--record", "fast-again"])
    assert fast.parse().record == "fast-again"


def test_a_command_that_fails_is_not_timed():
    with pytest.raises(UserError, match="no such run"):
        cli.median_of([sys.executable, "-c", "import sys; sys.exit('no such run')"])


@pytest.fixture
def without_bf16(monkeypatch):
    monkeypatch.setattr(turns, "multiplies_bf16", lambda device: False)


@pytest.mark.parametrize("arguments", [["--quick"], ["--cores"]])
def test_training_speed_leaves_out_bf16_where_it_is_emulated(without_bf16, arguments):
    options = train.parse(arguments)
    config = load_config(["quickstart"])
    batches = {train.BUCKETED: [], train.RANDOM: []}
    contestants = train.make_contestants(config, Sizes(40, 40), batches, options)
    names = [contestant.name for contestant in contestants]
    assert any("fp32" in name for name in names)
    assert not any("bf16" in name for name in names)
    peaks = {name: [peak] for name, peak in train.gemm_peaks(options).items()}
    assert all("bf16" not in name for name in peaks)
    contestants[0].speeds.append(2.0)
    assert train.row(contestants[0], [], peaks, 3.0)["share_of_gemm_peak"] == 6.0 / next(iter(peaks.values()))[0]


def test_translation_speed_leaves_out_bf16_where_it_is_emulated(without_bf16):
    assert search.precisions("cpu") == ["fp32", "int8"]


@pytest.mark.parametrize(("seconds_a_turn", "expected"), [(0.1, 4), (3.0, 2), (20.0, 1)])
def test_quick_takes_as_many_batches_as_two_minutes_allow(monkeypatch, seconds_a_turn, expected):
    clock = [0.0]

    class Slow:
        def turn(self, number):
            clock[0] += seconds_a_turn

    monkeypatch.setattr(train.time, "perf_counter", lambda: clock[0])
    options = train.parse(["--quick"])
    contestants = [Slow() for _ in range(3)]
    assert train.affordable_batches(contestants, options) == expected


def test_paired_turns_measure_ratios_with_intervals():
    clock = [0.0]

    def work(seconds):
        def turn(number):
            clock[0] += seconds * (1 + number)  # the machine gets slower
            return 6.0

        return turn

    quick, slow = (Contestant(name, work(s), clock=lambda: clock[0]) for name, s in (("quick", 1.0), ("slow", 3.0)))
    take_turns([quick, slow], 6, warm_up=2)
    assert quick.speeds == pytest.approx([6.0, 3.0, 2.0, 1.5, 1.2, 1.0])
    assert paired_ratio(quick.speeds, slow.speeds) == pytest.approx((3.0, 3.0, 3.0))


def test_an_interval_of_the_median_leaves_out_what_95_percent_allow():
    assert median_interval([1.0, 2.0, 9.0]) == (2.0, 1.0, 9.0)  # too few for 95 %: the range
    assert median_interval(range(8)) == (3.5, 0.0, 7.0)
    assert median_interval(range(9)) == (4.0, 1.0, 7.0)  # 2 (1 + 9) / 2^9 < 5 %
