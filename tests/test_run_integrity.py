"""A run directory knows its own content: damage is refused with one line, never silently wrong."""

from __future__ import annotations

import json
import os
import re
import shutil
from pathlib import Path

import pytest

from seq2seq_attn.errors import UserError
from seq2seq_attn.manifest import write_listed
from seq2seq_attn.run_dir import RunDir
from seq2seq_attn.train.session import choose_run_dir
from seq2seq_attn.translate.translator import load
from tests.toy_run import make_toy_run


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_toy_run(tmp_path_factory.mktemp("whole") / "run").path


@pytest.fixture
def run(whole: Path, tmp_path: Path) -> RunDir:
    return RunDir(shutil.copytree(whole, tmp_path / "run"))


@pytest.mark.parametrize(
    "name",
    [
        *("config.yaml", "model.safetensors", "source.vocab", "target.vocab"),
        *("source.tokenizer.json", "target.tokenizer.json", "source.sentencepiece.model"),
    ],
)
def test_another_file_than_that_of_the_run_is_refused(run: RunDir, tmp_path: Path, name: str) -> None:
    other = tmp_path / "other"
    other.write_bytes((run.path / name).read_bytes() + b"\n")
    shutil.copy(other, run.path / name)
    with pytest.raises(UserError, match=rf"{name}: damaged"):
        load(run.path)


def test_sizes_that_the_weights_do_not_have_are_refused_before_memory_is_taken(run: RunDir) -> None:
    config = run.config()
    config.model.hidden_size = 60_000
    config.model.encoder.hidden_size = 60_000
    config.model.embedding_size = 60_000
    run.save_config(config)
    with pytest.raises(UserError, match=r"not the model of this run's config.yaml and vocabularies"):
        load(run.path)


# ---- config.yaml ----


def test_a_configuration_changed_by_hand_is_refused_until_the_change_is_accepted(run: RunDir) -> None:
    path = run.path / "config.yaml"
    path.write_text(path.read_text().replace("max_length_ratio: 1.5", "max_length_ratio: 0.1"))
    with pytest.raises(UserError, match=r"config.yaml: damaged"):
        run.config()
    manifest = run.path / "manifest.json"
    manifest.write_text(
        json.dumps({name: of for name, of in json.loads(manifest.read_text()).items() if name != path.name})
    )
    assert run.config().search.max_length_ratio == 0.1


def test_a_configuration_of_a_run_reads_no_other_file(run: RunDir, tmp_path: Path) -> None:
    (tmp_path / "other.yaml").write_text("secret: 5")
    write_listed(run.path / "config.yaml", f"extends: {tmp_path / 'other.yaml'}\n".encode())
    with pytest.raises(UserError, match="unknown configuration key 'extends'"):
        run.config()


# ---- the other files ----


def test_damage_to_the_notes_of_a_run_is_noticed(run: RunDir, caplog: pytest.LogCaptureFixture) -> None:
    run.write_environment(["seq2seq", "train"], "cpu")
    environment = run.environment()
    assert environment is not None
    assert environment["command"] == ["seq2seq", "train"]
    for name in ("finished.json", "environment.json"):
        path = run.path / name
        path.write_text(re.sub(r"\d", "7", path.read_text(), count=3))
    assert not run.is_finished()
    assert "finished.json: damaged" in caplog.text
    with pytest.raises(UserError, match=r"environment\.json: damaged"):
        run.environment()


@pytest.mark.parametrize(
    "name", ["config.yaml", "model.safetensors", "source.vocab", "target.tokenizer.json", "source.sentencepiece.model"]
)
@pytest.mark.parametrize("what", ["pipe", "device"])
def test_pipes_and_devices_in_place_of_files_are_refused_at_once(run: RunDir, name: str, what: str) -> None:
    path = run.path / name
    path.unlink()
    if what == "pipe":
        os.mkfifo(path)
    else:
        path.symlink_to("/dev/zero")
    with pytest.raises(UserError, match=r"not a regular file|not a run directory"):
        load(run.path)


@pytest.mark.parametrize("name", ["last", "metrics.jsonl", "train.log", ".train.lock", "reverse"])
def test_a_resume_writes_through_no_link(run: RunDir, tmp_path: Path, name: str) -> None:
    (tmp_path / "elsewhere").mkdir()
    (run.path / name).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(
        UserError, match=rf"{name}: a link to .*elsewhere, but training writes inside its run directory only"
    ):
        choose_run_dir(run.path, resume=True, overwrite=False)


@pytest.mark.parametrize("is_empty", [False, True])
def test_an_overwrite_empties_no_file_that_a_link_leads_to(run: RunDir, tmp_path: Path, is_empty: bool) -> None:
    (tmp_path / "elsewhere").write_text("mine")
    path = tmp_path / "empty" if is_empty else run.path
    path.mkdir(exist_ok=True)
    (path / ".train.lock").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(UserError, match=r"\.train\.lock: a link to .*elsewhere"):
        choose_run_dir(path, resume=False, overwrite=True)
    assert (tmp_path / "elsewhere").read_text() == "mine"


def test_a_run_that_is_resumed_is_checked_and_rid_of_leftovers(run: RunDir) -> None:
    leftovers = [run.path / f".{name}.x1y2.tmp" for name in ("model.safetensors", "config.yaml", "source.vocab")]
    for path in (*leftovers, run.path / ".report.json.x.tmp"):
        path.touch()
    (run.path / "finished.json").unlink()
    run.check_files()
    run.reopen(run.config())
    assert not any(path.exists() for path in leftovers)
    assert (run.path / ".report.json.x.tmp").exists()  # perhaps somebody is evaluating
    assert not run.is_finished()
    (run.path / "source.vocab").write_text("")
    with pytest.raises(UserError, match=r"source.vocab: damaged"):
        run.check_files()
