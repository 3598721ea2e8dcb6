"""A session of a training run: its settings and directory, and the lock."""

import fcntl
import os
import re
import shutil
import subprocess
import sys
from datetime import date
from pathlib import Path

import pytest

from seq2seq_attn.config import Config, load_config
from seq2seq_attn.data.prepare import prepare_corpus
from seq2seq_attn.errors import UsageError, UserError
from seq2seq_attn.run import Run
from seq2seq_attn.train import loop
from seq2seq_attn.train.distributed import ALONE
from seq2seq_attn.train.loop import train
from seq2seq_attn.train.session import (
    check_same_run,
    check_start,
    choose_run_dir,
    create_run_dir,
    load_settings,
    locked,
    newest_unfinished,
)

pytestmark = pytest.mark.usefixtures("in_tmp_path")

HOLD = """
import sys, pathlib
from seq2seq_attn.train.session import locked
with locked(pathlib.Path(sys.argv[1])):
    """


def choose(run_dir=None, **how):
    return choose_run_dir(run_dir, **{"resume": False, "overwrite": False, **how})


def begin(name, *, written_at=0):
    run = Run.create(Path("runs") / name)
    run.save_config(Config(name=name))
    run.last_dir.mkdir()
    os.utime(run.last_dir, (written_at, written_at))
    return run.path


def test_a_new_run_gets_a_name_of_its_own(toy_config, monkeypatch):
    assert choose() is None
    assert not Path("runs").exists()
    config = load_config(["quickstart", "attention/bilinear"], ["seed=3"])
    today = date.today().isoformat()
    names = [create_run_dir(config, ALONE).name for _ in range(3)]
    assert names == [f"{today}-quickstart+bilinear-s3{number}" for number in ("", "-2", "-3")]

    def prepare_while_another_starts(*args, **options):
        Path("runs", f"{today}-toy-s1").mkdir()
        return prepare_corpus(*args, **options)

    monkeypatch.setattr(loop, "prepare_corpus", prepare_while_another_starts)
    assert train(toy_config("train.max_updates=1")).path.name == f"{today}-toy-s1-2"


def test_a_taken_directory_needs_a_word():
    path = begin("a")
    with pytest.raises(UsageError, match=r"runs/a: .*--resume .*--overwrite"):
        choose(path)
    assert choose(path, resume=True) == choose(path, overwrite=True) == path
    with pytest.raises(UsageError, match="--resume and --overwrite"):
        choose(path, resume=True, overwrite=True)
    with pytest.raises(UsageError, match=r"--overwrite.*--run-dir"):
        choose(None, overwrite=True)
    with pytest.raises(UsageError, match=r"^--run-dir 'x.udcff'"):
        choose(Path(os.fsdecode(b"x\xff")))
    with pytest.raises(UsageError, match=r"^--run-dir 'x.ny'"):
        choose(Path("x\ny"))


def test_what_is_no_run_is_left_alone(tmp_path):
    (tmp_path / "thesis.txt").write_text("do not lose")
    for how in ({}, {"resume": True}, {"overwrite": True}):
        with pytest.raises(UsageError, match=rf"{re.escape(str(tmp_path))}: .*config\.yaml"):
            choose(tmp_path, **how)
    with pytest.raises(UsageError, match=r"thesis\.txt"):
        choose(tmp_path / "thesis.txt")


def test_a_run_that_lost_its_state_is_not_begun_again_by_a_resume():
    path = begin("a")
    (path / "model.safetensors").touch()
    for named in (path, None):
        with pytest.raises(UsageError, match=r"runs/a: .*no last/"):
            choose(named, resume=True)
    assert choose(path, overwrite=True) == path


@pytest.mark.parametrize("call", [1, 2, 3])
def test_a_run_killed_while_its_first_file_was_written_starts_anew(tmp_path, monkeypatch, call):
    run = Run.create(tmp_path / "run")
    replace = Path.replace
    calls = iter(range(1, 9))

    def die(path, target):
        if next(calls) != call:
            return replace(path, target)
        for leftover in list(run.path.glob(".*.tmp")):  # a killed process removes nothing
            shutil.copy(leftover, f"{leftover}.tmp")
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Path, "replace", die)
        with pytest.raises(KeyboardInterrupt):
            run.save_config(load_config())
    assert choose(run.path, resume=True) == run.path
    assert run.is_empty() == (call < 3)
    assert call < 3 or run.config == load_config()


def test_resume_takes_the_unfinished_run_that_was_written_to_last():
    with pytest.raises(UsageError, match="runs/"):
        newest_unfinished()
    for name, written_at in (("old", 100), ("newest", 300), ("new", 200)):
        begin(name, written_at=written_at)
    done = Run(begin("done", written_at=400))
    done.model_path.touch()
    done.mark_finished({})
    assert choose(resume=True) == Path("runs/newest")


def test_settings_of_a_resume_are_the_runs_own_with_changes_on_top():
    run = Run(begin("a"))
    coverage = load_config(["multi30k", "objective/coverage"], ["name=mine", "seed=7"])
    run.save_config(coverage)
    assert newest_unfinished() == run.path
    config = load_settings([], ["train.max_epochs=99"], run_dir=run.path, resume=True)
    assert (config.name, config.seed, config.train.max_epochs) == ("mine", 7, 99)
    resumed = load_settings([], ["train.objectives={}"], run_dir=run.path, resume=True)
    assert resumed.train.objectives == {}
    kept = load_settings(
        [], ["train.objectives.coverage.weight=0.5"], run_dir=run.path, resume=True
    )
    assert kept.train.objectives["coverage"].weight == 0.5


def test_a_resume_of_nothing_begins_only_if_told_what(caplog):
    caplog.set_level("INFO")
    where = Path("not/there")
    assert load_settings(["tutorial"], run_dir=where, resume=True).name == "tutorial"
    assert "not/there" in caplog.text
    with pytest.raises(UsageError, match="not/there"):
        load_settings([], ["seed=3"], run_dir=where, resume=True)


def test_a_resume_of_a_run_without_state_keeps_its_settings_too():
    path = begin("a")
    same = load_config(["quickstart"], ["train.device=cpu"])
    Run(path).save_config(same)
    assert check_start(same, path, resume=True, overwrite=False) == path
    other = load_config(["quickstart"], ["train.device=cpu", "model.hidden_size=32"])
    with pytest.raises(UsageError, match=r"model\.hidden_size=32"):
        check_start(other, path, resume=True, overwrite=False)
    assert check_start(other, path, resume=False, overwrite=True) == path


@pytest.mark.parametrize(
    "change",
    [
        "seed=9",
        "model.hidden_size=8",
        "data.tokenizer.lowercase=true",
        "train.batch.size=2",
        "train.start_from=runs/x",
        "train.optimizer.name=adamw",
        "train.optimizer.average_decay=0.5",
        "train.validation.metric=perplexity",
        "train.validation.num_pairs=10",
        "train.validation.beam_size=2",
        "search.max_length_ratio=3.0",
        "search.length_penalty=2.5",
    ],
)
def test_a_resume_cannot_change_what_the_state_depends_on(change):
    with pytest.raises(UsageError, match=rf"{re.escape(change.partition('=')[0])}=.*resume"):
        check_same_run(load_config(), load_config((), [change]))


def test_a_resume_may_change_the_rest_and_says_so(caplog):
    changes = [
        "train.max_epochs=99",
        "data.data_dir=/elsewhere",
        "data.num_processes=3",
        "search.beam_size=9",
    ]
    check_same_run(load_config(), load_config((), changes))
    assert "train.max_epochs" in caplog.text
    assert "learning rate" not in caplog.text
    moving = ["train.schedule.name=trapezoid", "train.objectives={entropy: {end: 0.5}}"]
    before = load_config((), [*moving, "train.max_updates=5"])
    now = load_config((), [*moving, "train.max_updates=50"])
    check_same_run(before, now)
    assert "train.schedule.name=trapezoid" in caplog.messages[-1]
    assert "train.objectives.entropy" in caplog.messages[-1]


def test_one_training_at_a_time_writes_to_a_run(toy_config, tmp_path, monkeypatch):
    """Another one fails before it prepares data."""
    in_use = rf"in use .*\(process {os.getpid()}\)"
    new = tmp_path / "new"
    with locked(new), pytest.raises(UserError, match=in_use):
        train(toy_config(), run_dir=new)
    assert [path.name for path in new.iterdir()] == [".train.lock"]
    run = train(toy_config("train.max_updates=2"), run_dir=new)
    more = toy_config("train.max_updates=4")
    before = {path.name: path.stat().st_mtime_ns for path in run.path.iterdir()}
    with locked(run.path), monkeypatch.context() as patched:
        patched.setattr(loop, "prepare_corpus", lambda *_, **__: pytest.fail("data is prepared"))
        for how in ({"resume": True}, {"overwrite": True}):
            with pytest.raises(UserError, match=in_use):
                train(more, run_dir=run.path, **how)
    after = {path.name: path.stat().st_mtime_ns for path in run.path.iterdir()}
    assert {**after, ".train.lock": 0} == {**before, ".train.lock": 0}
    assert train(more, run_dir=run.path, resume=True).is_finished()


@pytest.mark.parametrize("end", ["print('held', flush=True)", "import os; os.kill(os.getpid(), 9)"])
def test_the_lock_goes_with_its_process(tmp_path, end):
    subprocess.run([sys.executable, "-c", HOLD + end, tmp_path], stdout=subprocess.DEVNULL)
    with locked(tmp_path):
        assert (tmp_path / ".train.lock").read_text() == f"{os.getpid()}\n"


def test_a_file_system_without_locks_is_warned_about(tmp_path, monkeypatch, caplog):
    def refuse(*args):
        raise OSError(37, "No locks available")

    monkeypatch.setattr(fcntl, "flock", refuse)
    with locked(tmp_path):
        assert "No locks available" in caplog.text
