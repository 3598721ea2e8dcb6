"""`scripts/gpu` on the CPU: its blocks at tiny sizes, and which of them it runs."""

from types import SimpleNamespace

from scripts.laboratory.benchmarks.gpu import __main__ as command
from scripts.laboratory.benchmarks.gpu.__main__ import BLOCKS
from scripts.laboratory.harness.records import ROOT
from seq2seq_attn.files import read_json
from tests.processes import output_of


def test_all_blocks_are_rehearsed_and_leave_docs_alone(tmp_path):
    before = sorted((ROOT / "docs" / "speed").iterdir())
    arguments = ["--rehearse", "--records", str(tmp_path)]
    output_of([ROOT / "scripts" / "gpu", *arguments])
    assert sorted((ROOT / "docs" / "speed").iterdir()) == before
    records = {name: read_json(tmp_path / f"gpu-{name}.json") for name in BLOCKS}
    assert {*records["check"]["losses"]["fp32"]} == {"cpu", "eager", "graphs"}
    tutorial = records["training"]
    ways = {
        "tutorial, random batches",
        "tutorial, bucketed batches",
        "ours, fast, CUDA graphs, fp32",
    }
    assert ways <= {row["name"] for row in tutorial["rows"]}
    assert tutorial["differences"]["fp32"]["loss"] < 1e-5
    assert all(row["sentences_per_s"] > 0 for row in records["text"]["rows"])
    assert records["bleu"]["seconds"].keys() == {"prepare", "train", "translate"}


def test_a_difference_to_the_cpu_stops_all_blocks(tmp_path, monkeypatch):
    started = []

    def fail(arguments, **_):
        started.append(arguments[-4])
        return SimpleNamespace(returncode=1)

    monkeypatch.setattr(command.subprocess, "run", fail)
    assert command.run_all([], tmp_path, "cpu") == 1
    assert started == ["check"]
    (tmp_path / "gpu-check.json").write_text("{}")
    command.run_all([], tmp_path, "cpu")
    assert started[1:] == [name for name in BLOCKS if name != "check"]
