"""The number of threads of a training run: chosen, recorded, and kept by a resume."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from seq2seq_attn.run_dir import RunDir
from seq2seq_attn.runtime import threads
from seq2seq_attn.runtime.threads import USER_VARIABLES, Watch
from seq2seq_attn.train import checkpoint, session
from seq2seq_attn.train.loop import train
from tests.train.conftest import ConfigMaker

CHOSEN = ("train.num_threads=null", "train.max_updates=1")


@pytest.fixture(autouse=True)
def _machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """Four CPUs, and a user who has set no number. Numbers are noted only: threads are slow where tests run in
    parallel."""
    number = 4

    def note(new: int) -> None:
        nonlocal number
        number = new

    monkeypatch.setattr(torch, "set_num_threads", note)
    monkeypatch.setattr(torch, "get_num_threads", lambda: number)
    for name in USER_VARIABLES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(threads, "num_cores", lambda: None)
    monkeypatch.setattr(session, "num_available_cpus", lambda: 4)


def recorded(run: RunDir) -> tuple[int, int]:
    """The numbers in a run's environment and in its state."""
    return run.environment()["num_threads"], checkpoint.load_state(run.last_dir).values["num_threads"]


def change_recorded(run: RunDir, number: int) -> None:
    tensors, values, _ = checkpoint.load_state(run.last_dir)
    checkpoint.save_state(run.last_dir, tensors, {**values, "num_threads": number})


def test_a_small_model_trains_on_one_thread(toy_config: ConfigMaker, tmp_path: Path) -> None:
    run = train(toy_config(*CHOSEN), run_dir=tmp_path / "run")
    assert recorded(run) == (1, 1)


@pytest.mark.parametrize(
    ("settings", "environment", "number"),
    [((), {}, 3), (("train.num_threads=2",), {}, 2), ((), {"OMP_NUM_THREADS": "1"}, 1)],
)
def test_a_resume_has_the_threads_of_the_run_unless_the_user_sets_them(
    toy_config: ConfigMaker,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    settings: tuple[str, ...],
    environment: dict[str, str],
    number: int,
) -> None:
    run = train(toy_config(*CHOSEN), run_dir=tmp_path / "run")
    change_recorded(run, 3)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    train(toy_config(*CHOSEN, "train.max_updates=2", *settings), run_dir=run.path, resume=True)
    assert recorded(run) == (1, number)
    assert any("before: the last bits" in message for message in caplog.messages) == (number != 3)


def test_a_resume_on_a_smaller_machine_chooses_again(toy_config: ConfigMaker, tmp_path: Path) -> None:
    run = train(toy_config(*CHOSEN), run_dir=tmp_path / "run")
    change_recorded(run, 5)
    train(toy_config(*CHOSEN, "train.max_updates=2"), run_dir=run.path, resume=True)
    assert recorded(run) == (1, 1)


def test_processes_of_a_machine_share_its_cpus(
    toy_config: ConfigMaker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "2")
    run = train(toy_config(*CHOSEN), run_dir=tmp_path / "run")
    assert recorded(run) == (2, 2)


def test_training_warns_and_keeps_its_threads(
    toy_config: ConfigMaker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(threads, "_RETRY_EVERY_S", 0.0)
    monkeypatch.setattr(threads, "free_threads", lambda others, most: 1)
    run = train(toy_config("train.num_threads=2", "train.max_updates=4"), run_dir=tmp_path / "run")
    assert recorded(run) == (2, 2)
    [warning] = [message for message in caplog.messages if "train.num_threads" in message]
    assert "2 threads" in warning


def test_the_load_is_watched_at_every_update(
    toy_config: ConfigMaker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    checks: list[Watch] = []
    monkeypatch.setattr(Watch, "check", lambda watch: checks.append(watch))
    train(toy_config("train.max_updates=3"), run_dir=tmp_path / "run")
    assert len(checks) >= 3
