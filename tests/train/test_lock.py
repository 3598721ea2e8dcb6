from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from seq2seq_attn.errors import UserError
from seq2seq_attn.run_dir import RunDir
from seq2seq_attn.train.loop import train
from seq2seq_attn.train.session import locked
from tests.train.conftest import ConfigMaker

HOLD = (
    "import sys, pathlib; from seq2seq_attn.train.session import locked\nwith locked(pathlib.Path(sys.argv[1])):\n    "
)


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
