"""`scripts/gpu` on the CPU: its blocks at tiny sizes, what it resumes, what it says, and the page of its records."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from scripts.benchmarks import pages
from scripts.laboratory.benchmarks.gpu import __main__ as command
from scripts.laboratory.benchmarks.gpu import bleu, bounds, checks, training, translation
from scripts.laboratory.benchmarks.gpu.plan import BLOCKS, Budget, Settings
from scripts.laboratory.harness.records import ROOT


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(device="cpu", minutes=1, records=tmp_path / "records", work=tmp_path / "work", is_rehearsal=True)


def read(settings: Settings, name: str) -> dict:
    record = settings.read_record(name)
    assert record is not None
    return record


@pytest.mark.slow
def test_all_blocks_are_rehearsed_and_leave_docs_alone(tmp_path: Path) -> None:
    before = sorted((ROOT / "docs" / "speed").iterdir())
    arguments = ["--rehearse", "--minutes", "4", "--records", str(tmp_path)]
    done = subprocess.run([ROOT / "scripts" / "gpu", *arguments], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(f"gpu-{name}.json" for name in BLOCKS)
    assert sorted((ROOT / "docs" / "speed").iterdir()) == before
    again = subprocess.run([ROOT / "scripts" / "gpu", *arguments], capture_output=True, text=True)
    assert again.stdout == "every block has its record; name those to run again\n"


def test_the_speed_blocks_measure_and_their_page_is_written(settings: Settings) -> None:
    assert training.run("training", settings, Budget(1))
    assert translation.run("translation", settings, Budget(1))
    functions = {function["config"]: function for function in read(settings, "training")["functions"]}
    names = [row["name"] for row in functions["tutorial"]["rows"]]
    assert names[:2] == ["tutorial, random batches", "tutorial, bucketed batches"]
    assert {f"ours, {way}, {p}" for way in ("eager", "graphs") for p in ("fp32", "tf32", "bf16")} == set(names[2:])
    assert functions["tutorial"]["differences"]["fp32"]["loss"] < 1e-5
    assert torch.get_float32_matmul_precision() == "highest"
    assert all(row["sentences_per_s"] > 0 for row in read(settings, "translation")["rows"])
    page = pages.render_page({f"gpu-{name}": read(settings, name) for name in ("training", "translation")})
    assert "## On a GPU" in page
    assert "| ours, graphs, bf16 |" in page
    assert "## On a GPU" not in pages.render_page({})


def test_a_training_block_resumes_a_saved_state_and_clears_anything_else(settings: Settings, tmp_path: Path) -> None:
    run_dir, samples = tmp_path / "run", tmp_path / "samples"
    run_dir.mkdir()
    (run_dir / "train.log").write_text("killed before anything was saved")
    fresh = bleu.train_command("bleu", settings, run_dir, samples)
    assert "--resume" not in fresh
    assert "train.cuda_graphs=true" in fresh
    assert not run_dir.exists()
    (run_dir / "last").mkdir(parents=True)
    (run_dir / "last" / "CURRENT.json").write_text("{}")
    assert bleu.train_command("bleu", settings, run_dir, samples)[-1] == "--resume"
    (run_dir / "finished.json").write_text("{}")
    assert "--resume" not in bleu.train_command("bleu", settings, run_dir, samples)


def test_a_training_block_goes_on_until_its_run_has_finished(settings: Settings, monkeypatch) -> None:
    monkeypatch.setattr(bleu, "TOY", [*bleu.TOY, "train.max_epochs=150"])
    assert not bleu.run("bleu", settings, Budget(0))  # no time: stopped as soon as it can save
    assert not read(settings, "bleu")["is_finished"]
    monkeypatch.setattr(bleu, "TOY_TARGETS", [0.0])  # reached by the first validation
    assert bleu.run("bleu", settings, Budget(2))
    record = read(settings, "bleu")
    assert record["is_finished"]
    assert record["minutes_to_bleu"]["0"] > 0.0
    assert record["utilization"] is None
    assert "0 BLEU on the validation set" in pages.render_page({"gpu-bleu": record})


def test_utilization_is_averaged_over_what_nvidia_smi_said(tmp_path: Path) -> None:
    path = tmp_path / "utilization.txt"
    path.write_text("50, 1000\n[N/A], 1200\n100, 1500\n")
    assert bleu.utilization(path) == {"utilization": 0.75, "peak_mib": 1500}


def test_failed_tests_are_recorded_by_name(tmp_path: Path) -> None:
    path = tmp_path / "tests.xml"
    path.write_text(
        "<testsuite><testcase name='good' time='1.5'/><testcase name='bad' time='0.5'><failure message='no&#10;more'/>"
        "</testcase><testcase name='elsewhere'><skipped/></testcase></testsuite>"
    )
    found = checks.read_report(path)
    assert found == {"passed": 1, "skipped": 1, "failed": [{"name": "bad", "message": "no"}], "seconds": 2.0}


def event(name: str, start: float, end: float, *, on_gpu: bool = False) -> SimpleNamespace:
    kind = torch.autograd.DeviceType.CUDA if on_gpu else torch.autograd.DeviceType.CPU
    return SimpleNamespace(name=name, device_type=kind, time_range=SimpleNamespace(start=start, end=end))


def test_a_profile_counts_launches_and_adds_up_busy_time() -> None:
    kernels = [event("gemm", 10, 30, on_gpu=True), event("add", 20, 40, on_gpu=True), event("add", 60, 70, on_gpu=True)]
    calls = [event("cudaLaunchKernel", 0, 1), event("cudaLaunchKernelExC", 2, 3), event("aten::mm", 0, 5)]
    found = bounds.summarize([*kernels, *calls], wall_s=100e-6, repeats=1)
    assert found is not None
    assert (found.launches, found.kernels) == (2, 3)
    assert found.busy_s == pytest.approx(40e-6)
    assert bounds.explain(found).startswith("bound by kernel launches")
    assert bounds.explain(found._replace(wall_s=40e-6), flop_share=0.6).startswith("bound by matrix products")
    assert bounds.explain(found._replace(wall_s=40e-6, kernels=10)).startswith("bound by kernels too small")
    assert bounds.summarize(calls, wall_s=1.0, repeats=1) is None


def test_a_budget_runs_out() -> None:
    now = [0.0]
    budget = Budget(2, clock=lambda: now[0])
    half = budget.share(0.5)
    now[0] = 60.0
    assert (budget.left_s, half.left_s) == (60.0, 0.0)


def test_the_list_says_what_is_done(tmp_path: Path, capsys) -> None:
    environment = {"device_name": "NVIDIA H200", "written_at": "2026-11-22T12:00:00+0000"}
    for name, is_finished in (("tests", True), ("bleu", False)):
        record = {"is_finished": is_finished, "environment": environment}
        (tmp_path / f"gpu-{name}.json").write_text(json.dumps(record))
    assert command.main(["--list", "--records", str(tmp_path)]) == 0
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert ["tests", "done,", "NVIDIA", "H200,", "2026-11-22"] in lines
    assert ["bleu", "unfinished,", "NVIDIA", "H200,", "2026-11-22"] in lines
    assert ["training", "waiting"] in lines


@pytest.mark.parametrize("arguments", [["trainig"], ["--minutes", "0"]])
def test_mistakes_are_told_at_once(arguments: list[str], capsys) -> None:
    with pytest.raises(SystemExit) as stopped:
        command.main(arguments)
    assert stopped.value.code == 2
    assert arguments[-1] in capsys.readouterr().err


def test_a_block_that_overstays_is_killed_with_all_that_it_started(settings: Settings, monkeypatch, capsys) -> None:
    pid_file = settings.work / "pid"
    settings.work.mkdir()
    script = f"""
import pathlib, subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
pathlib.Path({str(pid_file)!r}).write_text(str(child.pid))
time.sleep(60)
"""
    start = subprocess.Popen
    monkeypatch.setattr(command.subprocess, "Popen", lambda args, **how: start([sys.executable, "-c", script], **how))
    monkeypatch.setattr(command, "GRACE_S", -55.0)
    assert not command.run_apart("tests", settings)
    assert "tests: killed" in capsys.readouterr().err
    status = Path(f"/proc/{pid_file.read_text()}/stat")
    deadline = time.monotonic() + 10.0  # a busy machine takes its time to end a killed process

    def is_gone() -> bool:
        return not status.exists() or status.read_text().split(")")[1].split()[0] == "Z"

    while not is_gone() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert is_gone()
