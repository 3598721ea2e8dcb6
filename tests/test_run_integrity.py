"""A run directory knows its own content: damage is refused with one line, never silently wrong."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from seq2seq_attn.errors import UserError
from seq2seq_attn.run_dir import RunDir
from seq2seq_attn.translate.translator import load
from tests.toy_run import SOURCE, make_toy_run


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_toy_run(tmp_path_factory.mktemp("whole") / "run").path


@pytest.fixture
def run(whole: Path, tmp_path: Path) -> RunDir:
    return RunDir(shutil.copytree(whole, tmp_path / "run"))


def make_old(run: RunDir) -> None:
    """As versions without checksums wrote it."""
    save_file(run.load_best(), run.model_path, metadata={"format": "seq2seq-attn model", "format_version": "1"})
    config = run.path / "config.yaml"
    config.write_text("".join(line for line in config.read_text().splitlines(True) if not line.startswith("#")))


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


def test_a_damaged_subword_model_is_refused(run: RunDir) -> None:
    path = run.path / "source.sentencepiece.model"
    content = bytearray(path.read_bytes())
    content[33] ^= 4
    path.write_bytes(content)
    with pytest.raises(UserError, match=r"source.sentencepiece.model: damaged, or not the file"):
        load(run.path)


def test_a_run_without_checksums_is_loaded_with_one_warning(run: RunDir, caplog: pytest.LogCaptureFixture) -> None:
    expected = [one.text for one in load(run.path).translate(SOURCE)]
    assert caplog.messages == []
    make_old(run)
    assert [one.text for one in load(run.path).translate(SOURCE)] == expected
    assert len(caplog.messages) == 1
    assert "without checksums" in caplog.text


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
    make_old(run)
    with (run.path / "target.vocab").open("a") as stream:
        stream.write("more\n" * 1_000_000)
    monkeypatch.setattr(RunDir, "target_vocab", lambda _: pytest.fail("was read"))
    with pytest.raises(UserError, match=r"1000\d+.* by the configuration"):
        load(run.path)


def test_weights_of_another_type_are_refused(run: RunDir) -> None:
    tensors = {name: tensor.to(torch.int64) for name, tensor in run.load_best().items()}
    save_file(tensors, run.model_path, metadata={"format": "seq2seq-attn model", "format_version": "1"})
    with pytest.raises(UserError, match="holds I64 values"):
        load(run.path)
