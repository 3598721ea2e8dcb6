"""A run directory knows its own content: damage is refused with one line, never silently wrong."""

from __future__ import annotations

import json
import os
import re
import shutil
from pathlib import Path

import pytest
import torch

from seq2seq_attn.errors import UserError
from seq2seq_attn.run_dir import RunDir
from seq2seq_attn.train.start import choose_run_dir
from seq2seq_attn.translate.translator import load
from tests.toy_run import make_toy_run


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_toy_run(tmp_path_factory.mktemp("whole") / "run").path


@pytest.fixture
def run(whole: Path, tmp_path: Path) -> RunDir:
    return RunDir(shutil.copytree(whole, tmp_path / "run"))


@pytest.mark.parametrize("side", ["source", "target"])
def test_a_vocabulary_in_another_order_is_refused(run: RunDir, side: str) -> None:
    path = run.path / f"{side}.vocab"
    lines = path.read_text().splitlines(keepends=True)
    lines[10], lines[11] = lines[11], lines[10]
    path.write_text("".join(lines))
    with pytest.raises(UserError, match=rf"{side}.vocab: damaged, or not the file that model.safetensors was trained"):
        load(run.path)


@pytest.mark.parametrize("name", ["source.tokenizer.json", "target.tokenizer.json"])
def test_another_tokenizer_is_refused(run: RunDir, name: str) -> None:
    (run.path / name).write_text(json.dumps({"name": "characters", "lowercase": False}))
    with pytest.raises(UserError, match=rf"{name}: damaged, or not the file that model.safetensors was trained with"):
        load(run.path)


def test_sizes_that_the_weights_do_not_have_are_refused_before_memory_is_taken(run: RunDir) -> None:
    config = run.config()
    config.model.hidden_size = 60_000
    config.model.encoder.hidden_size = 60_000
    config.model.embedding_size = 60_000
    run.save_config(config)
    with pytest.raises(UserError, match=r"not the model of this run's config.yaml and vocabularies"):
        load(run.path)


def test_a_vocabulary_larger_than_the_weights_is_not_taken_into_memory(
    run: RunDir, monkeypatch: pytest.MonkeyPatch
) -> None:
    tensors = run.load_best()
    with (run.path / "target.vocab").open("a") as stream:
        stream.write("more\n" * 1_000_000)
    run.save_best(tensors, run.best_metadata())
    monkeypatch.setattr(RunDir, "target_vocab", lambda _: pytest.fail("was read"))
    with pytest.raises(UserError, match=r"1000\d+.* by the configuration"):
        load(run.path)


def test_weights_of_another_type_are_refused(run: RunDir) -> None:
    tensors = {name: tensor.to(torch.int64) for name, tensor in run.load_best().items()}
    run.save_best(tensors, run.best_metadata())
    with pytest.raises(UserError, match="holds I64 values"):
        load(run.path)


# ---- config.yaml ----


def test_a_configuration_changed_by_hand_is_refused_until_the_change_is_accepted(run: RunDir) -> None:
    path = run.path / "config.yaml"
    text = path.read_text().replace("max_length_ratio: 1.5", "max_length_ratio: 0.1")
    path.write_text(text)
    with pytest.raises(UserError, match=r"config.yaml: changed since training wrote it; .* delete its first line"):
        run.config()
    path.write_text(text.partition("\n")[2])
    assert run.config().search.max_length_ratio == 0.1


def test_a_configuration_that_was_cut_is_refused_wherever_it_was_cut(run: RunDir) -> None:
    path = run.path / "config.yaml"
    whole = path.read_bytes()
    for length in range(0, len(whole), 13):
        path.write_bytes(whole[:length])
        with pytest.raises(UserError, match=r"config.yaml: (changed since training wrote it|empty|not readable)"):
            run.config()


def test_a_configuration_of_a_run_reads_no_other_file(run: RunDir, tmp_path: Path) -> None:
    (tmp_path / "other.yaml").write_text("secret: 5")
    (run.path / "config.yaml").write_text(f"extends: {tmp_path / 'other.yaml'}\n")
    with pytest.raises(UserError, match="unknown configuration key 'extends'"):
        run.config()


# ---- the other files ----


def test_a_run_from_the_future_is_not_the_newest(run: RunDir, caplog: pytest.LogCaptureFixture) -> None:
    run.mark_finished({"finished_at": 1e308})
    assert not run.is_finished()
    assert "its date is in the future; the run counts as unfinished" in caplog.text


def test_damage_to_the_notes_of_a_run_is_noticed(run: RunDir, caplog: pytest.LogCaptureFixture) -> None:
    run.write_environment(["seq2seq", "train"], "cpu")
    environment = run.environment()
    assert environment is not None
    assert environment["command"] == ["seq2seq", "train"]
    for name in ("finished.json", "environment.json"):
        path = run.path / name
        path.write_text(re.sub(r"\d", "7", path.read_text(), count=3))
    assert not run.is_finished()
    assert run.environment() is None
    assert "environment.json: damaged" in caplog.text


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


def test_a_run_taken_up_again_is_checked_and_rid_of_leftovers(run: RunDir) -> None:
    leftovers = [run.path / f".{name}.x1y2.tmp" for name in ("model.safetensors", "finished.json", "source.vocab")]
    for path in (*leftovers, run.path / ".report.json.x.tmp"):
        path.touch()
    run.reopen(run.config())
    assert not any(path.exists() for path in leftovers)
    assert (run.path / ".report.json.x.tmp").exists()  # perhaps somebody is evaluating
    assert not run.is_finished()
    (run.path / "source.vocab").write_text("")
    with pytest.raises(UserError, match=r"source.vocab: damaged"):
        run.reopen(run.config())
