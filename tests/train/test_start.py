from __future__ import annotations

import os
import re
import shutil
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from seq2seq_attn.config import Config, load_config
from seq2seq_attn.data.prepare import prepare_corpus
from seq2seq_attn.data.store import PreparedCorpus
from seq2seq_attn.errors import UsageError
from seq2seq_attn.run_dir import RunDir
from seq2seq_attn.train.loop import train
from seq2seq_attn.train.start import (
    check_same_run,
    check_start,
    choose_run_dir,
    create_run_dir,
    load_settings,
    newest_unfinished,
)
from tests.train.conftest import ConfigMaker


@pytest.fixture(autouse=True)
def _in_tmp_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def choose(run_dir: Path | None = None, *, resume: bool = False, overwrite: bool = False) -> Path | None:
    return choose_run_dir(run_dir, resume=resume, overwrite=overwrite)


def begin(name: str, *, written_at: int = 0) -> Path:
    run = RunDir.create(Path("runs") / name)
    run.save_config(Config(name=name))
    run.last_dir.mkdir()
    os.utime(run.last_dir, (written_at, written_at))
    return run.path


def test_a_new_run_gets_a_name_of_its_own() -> None:
    expected = Path("runs") / f"{date.today().isoformat()}-attention-dot-s3"
    assert choose() is None
    assert not Path("runs").exists()
    config = Config(name="attention/dot", seed=3)
    assert [create_run_dir(config) for _ in range(3)] == [expected, Path(f"{expected}-2"), Path(f"{expected}-3")]


def test_runs_that_start_together_get_different_names(toy_config: ConfigMaker, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = Path("runs") / f"{date.today().isoformat()}-toy-s1"

    def prepare_while_another_starts(*args: Any, **options: Any) -> PreparedCorpus:
        (expected / "other").mkdir(parents=True)
        return prepare_corpus(*args, **options)

    monkeypatch.setattr("seq2seq_attn.train.loop.prepare_corpus", prepare_while_another_starts)
    assert train(toy_config("train.max_updates=1")).path == Path(f"{expected}-2")
    assert [path.name for path in expected.iterdir()] == ["other"]


def test_a_taken_directory_needs_a_word() -> None:
    path = begin("a")
    with pytest.raises(UsageError, match=r"runs/a: already holds a run; --resume .* --overwrite"):
        choose(path)
    assert choose(path, resume=True) == choose(path, overwrite=True) == path
    with pytest.raises(UsageError, match="--resume and --overwrite"):
        choose(path, resume=True, overwrite=True)
    with pytest.raises(UsageError, match="--overwrite: replaces a run; name it with --run-dir"):
        choose(None, overwrite=True)


def test_a_name_that_utf_8_cannot_write_is_refused() -> None:
    with pytest.raises(UsageError, match=r"^--run-dir 'x.udcff': not UTF-8, .* rename it$"):
        choose(Path(os.fsdecode(b"x\xff")))
    assert choose(Path("Straße")) == Path("Straße")


def test_a_resume_drops_the_objectives_of_a_run_where_it_is_told_to() -> None:
    run = RunDir.create(Path("runs/a"))
    run.save_config(load_config(["multi30k", "objective/coverage"]))
    resumed, _ = load_settings([], ["train.objectives={}"], run_dir=run.path, resume=True)
    assert resumed.train.objectives == {}
    kept, _ = load_settings([], ["train.objectives.coverage.weight=0.5"], run_dir=run.path, resume=True)
    assert kept.train.objectives["coverage"].weight == 0.5


def test_a_run_that_lost_its_state_is_not_begun_again_by_a_resume() -> None:
    path = begin("a")
    (path / "model.safetensors").touch()
    for named in (path, None):
        with pytest.raises(UsageError, match=r"runs/a: has a model, but no saved state to resume \(no last/\)"):
            choose(named, resume=True)
    assert choose(path, overwrite=True) == path


def test_a_resume_of_a_run_without_state_keeps_its_settings_too() -> None:
    path = begin("a")
    same = load_config(["quickstart"], ["train.device=cpu"])
    RunDir(path).save_config(same)
    assert check_start(same, path, resume=True, overwrite=False) == path
    for setting in ("seed=7", "model.hidden_size=32"):
        other = load_config(["quickstart"], ["train.device=cpu", setting])
        with pytest.raises(UsageError, match=f"{setting}: the run was started with .* which a resume cannot change"):
            check_start(other, path, resume=True, overwrite=False)
        assert check_start(other, path, resume=False, overwrite=True) == path


def test_a_resume_without_a_run_says_that_it_starts_one(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    load_settings(["quickstart"], [], run_dir=Path("runs/typo"), resume=True)
    assert caplog.messages == ["runs/typo: no run to resume; starting one"]


def test_what_is_no_run_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("do not lose")
    for how in ({}, {"resume": True}, {"overwrite": True}):
        with pytest.raises(UsageError, match=r"not empty and not a run directory \(it has no config.yaml\)"):
            choose(tmp_path, **how)
    with pytest.raises(UsageError, match=r"thesis.txt: a file; --run-dir expects a directory"):
        choose(tmp_path / "thesis.txt")


@pytest.mark.parametrize("call", [1, 2, 3])
def test_a_run_killed_while_its_first_file_was_written_starts_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: int
) -> None:
    run, replace, calls = RunDir.create(tmp_path / "run"), Path.replace, iter(range(1, 9))

    def die(path: Path, target: Path) -> Path:
        if next(calls) == call:
            for left in [*run.path.glob(".*.tmp")]:  # a killed process removes nothing
                shutil.copy(left, f"{left}.tmp")
            raise KeyboardInterrupt
        return replace(path, target)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "replace", die)
        with pytest.raises(KeyboardInterrupt):
            run.save_config(load_config())
    assert choose(run.path, resume=True) == run.path
    assert run.is_empty() == (call < 3)
    assert call < 3 or run.config() == load_config()


def test_resume_takes_the_unfinished_run_that_was_written_to_last() -> None:
    with pytest.raises(UsageError, match="no unfinished run in runs/"):
        newest_unfinished()
    begin("old", written_at=100)
    begin("newest", written_at=300)
    begin("new", written_at=200)
    done = RunDir(begin("done", written_at=400))
    done.model_path.touch()
    done.mark_finished()
    assert choose(resume=True) == Path("runs/newest")


def test_settings_of_a_resume_are_the_runs_own_with_changes_on_top() -> None:
    path = begin("a")
    RunDir(path).save_config(Config(name="mine", seed=7))
    config, run_dir = load_settings([], ["train.max_epochs=99"], run_dir=None, resume=True)
    assert (config.name, config.seed, config.train.max_epochs, run_dir) == ("mine", 7, 99, path)


def test_a_run_is_named_by_what_was_varied() -> None:
    config, _ = load_settings(["quickstart", "attention/bilinear"], [], run_dir=None, resume=False)
    assert create_run_dir(config).name == f"{date.today().isoformat()}-quickstart+bilinear-s1"


def test_a_resume_of_nothing_begins_only_if_told_what() -> None:
    where = Path("not/there")
    config, run_dir = load_settings(["tutorial"], [], run_dir=where, resume=True)
    assert (config.name, run_dir) == ("tutorial", where)
    with pytest.raises(UsageError, match="not/there: nothing to resume"):
        load_settings([], ["seed=3"], run_dir=where, resume=True)


@pytest.mark.parametrize(
    "change",
    [
        *("seed=9", "model.hidden_size=8", "train.batch.size=2", "data.tokenizer.lowercase=true"),
        *(f"train.validation.{change}" for change in ("metric=perplexity", "num_pairs=10", "beam_size=2")),
        *("search.coverage_penalty=0.1", "search.no_repeat_ngram=3", "search.max_length_extra=7"),
        *("train.optimizer.name=adamw", "train.optimizer.average_decay=0.5", "search.length_penalty=2.5"),
        *("search.max_length_ratio=3.0", "train.start_from=runs/x"),
    ],
)
def test_a_resume_cannot_change_what_the_state_depends_on(change: str) -> None:
    key = change.partition("=")[0]
    with pytest.raises(UsageError, match=rf"{re.escape(key)}=.*which a resume cannot change"):
        check_same_run(load_config(), load_config((), [change]))


def test_a_resume_may_change_the_rest_and_says_so(caplog: pytest.LogCaptureFixture) -> None:
    changes = ["train.max_epochs=99", "data.data_dir=/elsewhere", "data.num_processes=3"]
    check_same_run(load_config(), load_config((), changes))
    assert "train.max_epochs: 99 in this session, 10 before" in caplog.text
