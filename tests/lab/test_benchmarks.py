"""Each benchmark's whole way at tiny sizes; the tutorial's loop is the same function as ours;
paired turns."""

import sys
from pathlib import Path

import pytest
import torch
import yaml

from scripts.laboratory import __main__ as lab
from scripts.laboratory.benchmarks import (
    fast,
    measure,
    peers,
    prepare,
    search,
    time_to_bleu,
    train,
)
from scripts.laboratory.harness.records import SPEED
from scripts.laboratory.harness.turns import Contestant, median_interval, paired_ratio, take_turns
from seq2seq_attn.config import load_config
from seq2seq_attn.errors import UsageError, UserError
from seq2seq_attn.files import read_json
from seq2seq_attn.train.loop import train as train_run

CPU = torch.device("cpu")
UNUSED = set(
    "environment fed_back run name bare_lines_per_s num_usable_cpus content is_same left_out "
    "gemm_peak flops_per_token "
    "share_of_gemm_peak types cpu_seconds largest_process_mib".split()
)
"""keys of records that are optional, or that no page shows"""


def numbers(value):
    """All numbers of a record."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        return [number for item in value for number in numbers(item)]
    return [value] if isinstance(value, int | float) else []


@pytest.fixture(scope="module")
def trained(module_path):
    """A run of one update on a toy corpus."""
    settings = measure.toy_settings(module_path / "toy") | {"train.max_updates": 1}
    return train_run(load_config([], settings), run_dir=module_path / "run")


def test_a_run_is_timed_in_each_precision(trained, capfd):
    search.main(["--quick", "--run", str(trained.path)])
    rows = yaml.safe_load(capfd.readouterr().out)["rows"]
    assert {row["precision"] for row in rows} >= {"fp32", "int8"}
    assert {row["beam_size"] for row in rows} == {1, 5}
    assert all(row["sentences_per_s"] > 0.0 <= row["bleu"] for row in rows)


def test_minutes_to_bleu_are_read_from_a_run(trained, capfd):
    time_to_bleu.main([str(trained.path), "--targets", "0,99"])
    figures = yaml.safe_load(capfd.readouterr().out)
    published = read_json(SPEED / "time-to-bleu.json")
    assert published.keys() >= figures.keys()
    assert figures["minutes_to_bleu"]["0"] == figures["validations"][0]["minutes"]
    assert figures["minutes_to_bleu"]["99"] is None


@pytest.mark.parametrize("module", [train, fast], ids=lambda module: module.__name__)
def test_a_benchmark_prints_the_figures_of_its_record(module, capfd):
    module.main(["--quick"])
    found = yaml.safe_load(capfd.readouterr().out)
    name = module.__name__.rpartition(".")[2].replace("_", "-")
    published = read_json(SPEED / f"{name}.json")
    assert published.keys() - UNUSED <= found.keys()
    rows, published_rows = (
        value.get("rows", value.get("by_pairs")) for value in (found, published)
    )
    if isinstance(rows, list):
        assert published_rows[0].keys() - UNUSED <= rows[0].keys()
    assert rows is None or all(number >= 0.0 for number in numbers(rows))


def test_a_misspelled_benchmark_is_refused():
    with pytest.raises(UsageError, match="peer:"):
        lab.main(["bench", "peer"])


def test_preparing_is_measured_by_its_command(capfd):
    prepare.main(["--quick"])
    found = yaml.safe_load(capfd.readouterr().out)
    assert [row["processes"] for row in found["rows"]] == [1, 2]
    assert all(number > 0.0 for number in numbers(found["rows"]))


def test_peers_take_turns_by_their_commands_and_logs(tmp_path, monkeypatch):
    monkeypatch.setattr(peers, "precisions", lambda device: ["fp32"])
    rows = list(peers.measure({}, tmp_path, peers.QUICK, is_toy=True))
    assert {row["contestant"] for row in rows} == {"ours, fp32"}
    assert [row["what"].split(",")[0] for row in rows] == ["training", "decoding", "decoding"]
    assert all(row["speed"] > 0 and row["parameters"] > 0 for row in rows)
    competitor = peers.Competitor(
        "fp32", peers.OURS._replace(tokens_per_s="no such line"), Path(sys.executable)
    )
    competitor.task = {
        **peers.TASK,
        "folder": tmp_path,
        "is_toy": True,
        "hidden_size": 16,
        "half_size": 8,
    }
    with pytest.raises(UserError, match="fp32"):
        competitor.turn(0)


def test_the_tutorials_model_is_the_same_function_as_ours(tmp_path):
    config = load_config(["tutorial"], measure.toy_settings(tmp_path))
    sizes = train.Sizes(40, 30)
    found = train.gradient_difference(config, sizes, "fp32")
    assert 0.0 < max(found.values()) < 1e-5


def test_paired_turns_measure_ratios_with_intervals():
    clock = [0.0]

    def work_of(seconds):
        def turn(number):
            clock[0] += seconds * (1 + number)  # the machine gets slower
            return 6.0

        return turn

    quick, slow = (
        Contestant(name, work_of(s), clock=lambda: clock[0])
        for name, s in (("quick", 1.0), ("slow", 3.0))
    )
    take_turns([quick, slow], 6, warm_up=2)
    assert quick.speeds == pytest.approx([6.0, 3.0, 2.0, 1.5, 1.2, 1.0])
    assert paired_ratio(quick.speeds, slow.speeds) == pytest.approx((3.0, 3.0, 3.0))


def test_an_interval_of_the_median_leaves_out_what_95_percent_allow():
    assert median_interval([1.0, 2.0, 9.0]) == (2.0, 1.0, 9.0)  # too few for 95 %: the range
    assert median_interval(range(8)) == (3.5, 0.0, 7.0)
    assert median_interval(range(9)) == (4.0, 1.0, 7.0)  # 2 (1 + 9) / 2^9 < 5 %
