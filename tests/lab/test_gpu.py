"""`scripts/gpu` on the CPU: its blocks at tiny sizes, what it resumes, and its limits of time."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from scripts.laboratory.benchmarks.gpu import __main__ as command
from scripts.laboratory.benchmarks.gpu import blocks, bounds
from scripts.laboratory.benchmarks.gpu.plan import BLOCKS, Budget, Settings
from scripts.laboratory.harness.records import ROOT


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    (tmp_path / "work").mkdir()
    return Settings("cpu", tmp_path / "records", tmp_path / "work")


def read(settings: Settings, name: str) -> dict:
    record = settings.read_record(name)
    assert record is not None
    return record


def test_all_blocks_are_rehearsed_and_leave_docs_alone(tmp_path: Path) -> None:
    before = sorted((ROOT / "docs" / "speed").iterdir())
    arguments = ["--rehearse", "--minutes", "10", "--records", str(tmp_path)]
    done = subprocess.run([ROOT / "scripts" / "gpu", *arguments], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    records = {name: json.loads((tmp_path / f"gpu-{name}.json").read_text()) for name in BLOCKS}
    assert len([*tmp_path.iterdir()]) == len(BLOCKS)
    assert all(record["is_finished"] for record in records.values())
    assert sorted((ROOT / "docs" / "speed").iterdir()) == before
    assert {*records["check"]["losses"]} == {"cpu", "eager", "graphs"}
    tutorial, _ = records["training"]["functions"]
    ours = [f"ours, {way}, {precision}" for way in ("eager", "graphs") for precision in ("fp32", "tf32", "bf16")]
    names = ["tutorial, random batches", "tutorial, bucketed batches", *ours]
    assert [row["name"] for row in tutorial["rows"]] == names
    assert tutorial["differences"]["fp32"]["loss"] < 1e-5
    assert all(row["sentences_per_s"] > 0 for row in records["translation"]["rows"])
    assert (records["tests"]["passed"], records["tests"]["failed"]) == (1, [])
    again = subprocess.run([ROOT / "scripts" / "gpu", *arguments], capture_output=True, text=True)
    assert again.stdout == "every block has its record; name those to run again\n"


def test_a_difference_to_the_cpu_stops_all_blocks(settings: Settings, monkeypatch, capsys) -> None:
    started = []
    monkeypatch.setattr(command, "run_apart", lambda name, settings: started.append(name))
    assert command.run_all([], settings) == 1
    assert started == ["check"]


def test_a_training_block_resumes_a_saved_state_and_clears_anything_else(settings: Settings, tmp_path: Path) -> None:
    run_dir = tmp_path / "run"
    run_dir.mkdir()
    (run_dir / "train.log").write_text("killed before anything was saved")
    fresh = blocks.train_command(settings, run_dir, cuda_graphs=True)
    assert "--resume" not in fresh
    assert "train.cuda_graphs=true" in fresh
    assert not run_dir.exists()
    (run_dir / "last").mkdir(parents=True)
    (run_dir / "last" / "CURRENT.json").write_text("{}")
    assert blocks.train_command(settings, run_dir, cuda_graphs=True)[-1] == "--resume"
    (run_dir / "finished.json").write_text("{}")
    assert "--resume" not in blocks.train_command(settings, run_dir, cuda_graphs=True)


def test_a_training_block_goes_on_until_its_target_is_reached(settings: Settings, monkeypatch) -> None:
    monkeypatch.setattr(blocks, "TOY_EPOCHS", 150)
    assert not blocks.bleu(settings, Budget(0), name="bleu")  # no time: stopped as soon as it can save
    assert not read(settings, "bleu")["is_finished"]
    monkeypatch.setattr(blocks, "TOY_TARGETS", [0.0])  # reached by the first validation
    assert blocks.bleu(settings, Budget(2), name="bleu")
    record = read(settings, "bleu")
    assert record["is_finished"]
    assert record["minutes_to_bleu"]["0"] > 0.0


def test_failed_tests_are_recorded_by_name() -> None:
    output = "FAILED tests/a.py::test_bad[x y] - AssertionError: no\n1 failed, 2 passed, 3 skipped, 1 warning in 2.00s"
    failed = [{"name": "tests/a.py::test_bad[x y]", "message": "AssertionError: no"}]
    assert blocks.read_summary(output) == {"passed": 2, "skipped": 3, "failed": failed}


def event(name: str, start: float, end: float, *, on_gpu: bool = False) -> SimpleNamespace:
    kind = torch.autograd.DeviceType.CUDA if on_gpu else torch.autograd.DeviceType.CPU
    return SimpleNamespace(name=name, device_type=kind, time_range=SimpleNamespace(start=start, end=end))


def test_a_profile_counts_launches_and_adds_up_busy_time() -> None:
    kernels = [event("gemm", 10, 30, on_gpu=True), event("add", 30, 40, on_gpu=True), event("add", 60, 70, on_gpu=True)]
    calls = [event("cudaLaunchKernel", 0, 1), event("cudaLaunchKernelExC", 2, 3), event("aten::mm", 0, 5)]
    found = bounds.summarize([*kernels, *calls], wall_s=100e-6, repeats=1)
    assert found is not None
    assert (found["launches"], found["kernels"]) == (2, 3)
    assert found["busy_s"] == pytest.approx(40e-6)
    assert bounds.explain(found, 0.0).startswith("bound by kernel launches")
    assert bounds.explain(found | {"wall_s": 40e-6}, 0.6).startswith("bound by matrix products")
    assert bounds.explain(found | {"wall_s": 40e-6, "kernels": 10}, 0.0).startswith("bound by kernels too small")
    assert bounds.summarize(calls, wall_s=1.0, repeats=1) is None


def test_a_budget_runs_out() -> None:
    now = [0.0]
    budget = Budget(2, clock=lambda: now[0])
    half = budget.share(0.5)
    now[0] = 60.0
    assert (budget.left_s(), half.left_s()) == (60.0, 0.0)


def test_the_list_says_what_is_done(tmp_path: Path, capsys) -> None:
    environment = {"device_name": "NVIDIA H200", "written_at": "2026-11-22T12:00:00+0000"}
    for name, is_finished in (("tests", True), ("bleu", False)):
        record = {"is_finished": is_finished, "environment": environment}
        (tmp_path / f"gpu-{name}.json").write_text(json.dumps(record))
    assert command.main(["--list", "--records", str(tmp_path)]) == 0
    states = dict(line.split(maxsplit=1) for line in capsys.readouterr().out.splitlines()[::2])
    assert states["tests"] == "done, NVIDIA H200, 2026-11-22"
    assert states["bleu"].startswith("unfinished")
    assert states["training"] == "waiting"


@pytest.mark.parametrize("arguments", [["trainig"], ["--minutes", "0"]])
def test_a_wrong_name_or_limit_is_an_error(arguments: list[str], capsys) -> None:
    with pytest.raises(SystemExit) as stopped:
        command.main(arguments)
    assert stopped.value.code == 2
    assert arguments[-1] in capsys.readouterr().err


def test_a_block_that_overstays_is_killed_with_all_that_it_started(settings: Settings, monkeypatch, capsys) -> None:
    pid_file = settings.work / "pid"
    script = f"""
import pathlib, subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
pathlib.Path({str(pid_file)!r}).write_text(str(child.pid))
time.sleep(60)
"""
    start = subprocess.Popen
    monkeypatch.setattr(command.subprocess, "Popen", lambda args, **how: start([sys.executable, "-c", script], **how))
    monkeypatch.setattr(command, "GRACE_S", -115.0)
    assert not command.run_apart("tests", settings)
    assert "tests: killed" in capsys.readouterr().err
    status = Path(f"/proc/{pid_file.read_text()}/stat")
    deadline = time.monotonic() + 10.0  # a busy machine takes its time to end a killed process

    def is_gone() -> bool:
        return not status.exists() or status.read_text().split(")")[1].split()[0] == "Z"

    while not is_gone() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert is_gone()
