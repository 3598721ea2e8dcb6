"""A session of a training run: signals, and the lock on the run directory."""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from seq2seq_attn.errors import UserError
from seq2seq_attn.run_dir import RunDir
from seq2seq_attn.train.loop import train
from seq2seq_attn.train.session import catch_signals, locked
from tests.train.conftest import ConfigMaker

HOLD = (
    "import sys, pathlib; from seq2seq_attn.train.session import locked\nwith locked(pathlib.Path(sys.argv[1])):\n    "
)


@pytest.mark.parametrize(
    ("number", "error", "message"),
    [
        (signal.SIGINT, KeyboardInterrupt, "^$"),
        (signal.SIGTERM, SystemExit, "^143$"),
        (signal.SIGHUP, SystemExit, "^129$"),
    ],
)
def test_the_first_signal_is_noted_and_the_second_leaves(
    number: int, error: type[BaseException], message: str, capfd: pytest.CaptureFixture[str]
) -> None:
    before = signal.getsignal(number)
    with catch_signals() as stop:
        os.kill(os.getpid(), number)
        assert stop.is_set
        with pytest.raises(error, match=message):
            os.kill(os.getpid(), number)
        with pytest.raises(error, match=message):
            stop.leave()
    assert signal.getsignal(number) is before
    assert f"{signal.Signals(number).name}: finishing this update" in capfd.readouterr().err


def test_the_first_signal_does_not_leave_though_another_rank_had_one() -> None:
    with catch_signals() as stop:
        stop.signal_number = signal.SIGTERM  # as `Session.sync_ranks` sets it
        os.kill(os.getpid(), signal.SIGTERM)
        assert stop.is_set


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGHUP])
def test_a_signal_that_was_ignored_stays_ignored(number: int, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    former = signal.signal(number, signal.SIG_IGN)
    try:
        with catch_signals() as stop:
            os.kill(os.getpid(), number)
            assert not stop.is_set
    finally:
        signal.signal(number, former)
    told = f"to stop, run: kill -TERM {os.getpid()}" in caplog.text
    assert told is (number == signal.SIGINT)


def test_a_terminal_that_is_gone_does_not_stop_the_save(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*args: object) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(os, "write", fail)
    with catch_signals() as stop:
        os.kill(os.getpid(), signal.SIGHUP)
        assert stop.is_set


def test_without_a_signal_nothing_happens() -> None:
    with catch_signals() as stop:
        assert not stop.is_set
        stop.leave()


def test_another_thread_catches_nothing() -> None:
    found: list[object] = []

    def use() -> None:
        with catch_signals() as stop:
            found.append(stop.is_set)

    before = signal.getsignal(signal.SIGINT)
    thread = threading.Thread(target=use)
    thread.start()
    thread.join()
    assert found == [False]
    assert signal.getsignal(signal.SIGINT) is before


def written_at(run: RunDir) -> dict[str, int]:
    """When each file was written, without the lock."""
    return {path.name: path.stat().st_mtime_ns for path in run.path.iterdir() if path.name != ".train.lock"}


def test_one_training_at_a_time_writes_to_a_run(
    toy_config: ConfigMaker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other one hears it before it prepares data."""
    config = toy_config("train.max_updates=2")
    run = train(config, run_dir=tmp_path / "run")
    more = toy_config("train.max_updates=4")
    before = written_at(run)
    with locked(run.path), monkeypatch.context() as patched:
        patched.setattr("seq2seq_attn.train.loop.prepare_corpus", lambda *_, **__: pytest.fail("data is prepared"))
        for how in ({"resume": True}, {"overwrite": True}):
            with pytest.raises(UserError, match=rf"in use by another training run \(process {os.getpid()}\); stop it"):
                train(more, run_dir=run.path, **how)
    assert written_at(run) == before
    assert train(more, run_dir=run.path, resume=True).is_finished()


def test_two_that_begin_one_run_at_once(toy_config: ConfigMaker, tmp_path: Path) -> None:
    with locked(tmp_path / "run"), pytest.raises(UserError, match="in use by another training run"):
        train(toy_config(), run_dir=tmp_path / "run")
    assert [path.name for path in (tmp_path / "run").iterdir()] == [".train.lock"]
    assert RunDir.create(tmp_path / "run").is_empty()


@pytest.mark.parametrize("end", ["print('held', flush=True)", "import os; os.kill(os.getpid(), 9)"])
def test_the_lock_goes_with_its_process(tmp_path: Path, end: str) -> None:
    subprocess.run([sys.executable, "-c", HOLD + end, str(tmp_path)], stdout=subprocess.DEVNULL, check=False)
    with locked(tmp_path):
        assert (tmp_path / ".train.lock").read_text() == f"{os.getpid()}\n"


def test_a_file_system_without_locks_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def refuse(*args: object) -> None:
        raise OSError(37, "No locks available")

    monkeypatch.setattr("fcntl.flock", refuse)
    with locked(tmp_path):
        assert "cannot be locked (No locks available); do not start another training run there" in caplog.text
