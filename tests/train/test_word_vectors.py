"""Embeddings that begin as pretrained vectors: in a training, its resume, and a run that was moved."""

from __future__ import annotations

import logging
import re
import shutil
from pathlib import Path

import pytest
import torch

from seq2seq_attn import load
from seq2seq_attn.config import ModelConfig
from seq2seq_attn.errors import UsageError, UserError
from seq2seq_attn.model.build import build_model
from seq2seq_attn.run_dir import RunDir
from seq2seq_attn.train import checkpoint
from seq2seq_attn.train.loop import train
from tests.train.conftest import ConfigMaker

SIZE = 17
LETTERS = "abdefgHKlMnrstu"


@pytest.fixture
def vectors(tmp_path: Path) -> Path:
    """A vector for each of some letters: the corpus is tokenized into characters."""
    path = tmp_path / "letters.vec"
    numbers = " ".join(["0.25"] * (SIZE - 1))
    lines = [f"{letter} {number} {numbers}" for number, letter in enumerate(LETTERS)]
    path.write_text(f"{len(LETTERS)} {SIZE}\n" + "\n".join(lines) + "\n", encoding="utf-8")
    return path


def rows(tensors: dict[str, torch.Tensor], run: RunDir, name: str) -> torch.Tensor:
    """The rows of the letters in an embedding."""
    vocab = run.vocab("source") if name.startswith("encoder") else run.vocab("target")
    return tensors[name][vocab.ids_of(letter for letter in LETTERS if letter in vocab)]


def expected(run: RunDir, side: str) -> torch.Tensor:
    vocab = run.vocab("source") if side == "source" else run.vocab("target")
    first = torch.tensor([float(number) for number, letter in enumerate(LETTERS) if letter in vocab])
    return torch.cat([first.unsqueeze(1), torch.full((len(first), SIZE - 1), 0.25)], dim=1)


@pytest.mark.parametrize("freeze", ["true", "false"])
def test_training_begins_with_the_vectors(
    toy_config: ConfigMaker, tmp_path: Path, vectors: Path, freeze: str, caplog: pytest.LogCaptureFixture
) -> None:
    settings = [f"model.embedding.source_vectors={vectors}", f"model.embedding.freeze={freeze}"]
    small = ["train.optimizer.learning_rate=1e-6", "train.optimizer.average_decay=0.9", "train.max_updates=2"]
    with caplog.at_level(logging.INFO):
        run = train(toy_config(*settings, *small), run_dir=tmp_path / "run")
    found = rows(run.load_best().tensors, run, "encoder.embedding.weight")
    torch.testing.assert_close(found, expected(run, "source"), atol=0.0 if freeze == "true" else 1e-4, rtol=0)
    assert torch.equal(found, expected(run, "source")) is (freeze == "true")
    types = run.vocab("source").tokens[4:]
    number = sum(letter.lower() in LETTERS.lower() for letter in types)
    share, by_case = f"{100 * number / len(types):.1f} %", number - len(found)
    line = re.escape(f"letters.vec: vectors for {number} of {len(types)} source types ({share}), {by_case} of them")
    assert re.search(line, caplog.text)
    assert re.search(line, (run.path / "train.log").read_text(encoding="utf-8"))


def test_a_resumed_and_moved_run_needs_the_file_no_more(toy_config: ConfigMaker, tmp_path: Path, vectors: Path) -> None:
    settings = [f"model.embedding.{side}_vectors={vectors}" for side in ("source", "target")]
    whole = train(toy_config(*settings, "model.embedding.freeze=true", "train.max_updates=4"), run_dir=tmp_path / "a")
    half = toy_config(*settings, "model.embedding.freeze=true", "train.max_updates=2")
    train(half, run_dir=tmp_path / "b")
    vectors.unlink()
    shutil.move(tmp_path / "b", tmp_path / "moved")
    full = toy_config(*settings, "model.embedding.freeze=true", "train.max_updates=4")
    resumed = train(full, run_dir=tmp_path / "moved", resume=True)
    states = [checkpoint.load_state(run.last_dir).tensors for run in (whole, resumed)]
    assert states[0].keys() == states[1].keys()
    assert all(torch.equal(tensor, states[1][name]) for name, tensor in states[0].items())
    assert torch.equal(rows(resumed.load_best().tensors, resumed, "embedding.weight"), expected(resumed, "target"))
    assert len(load(resumed.path).translate(["Hund"])) == 1


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        (None, UserError, r"letters\.vec: no such file"),
        ("a 1 2 3\n", UsageError, r"source_vectors=.*: its vectors have 3 numbers, .*; set model\.embedding_size=3"),
        ("a b\n", UserError, r"line 1: expected a token and its numbers"),
    ],
)
def test_a_wrong_file_is_refused_before_data_is_prepared(
    toy_config: ConfigMaker, tmp_path: Path, vectors: Path, text: str | None, error: type[Exception], message: str
) -> None:
    vectors.unlink()
    if text is not None:
        vectors.write_text(text, encoding="utf-8")
    config = toy_config(f"model.embedding.source_vectors={vectors}", f"data.data_dir={tmp_path / 'data'}")
    with pytest.raises(error, match=message):
        train(config, run_dir=tmp_path / "run")
    assert not (tmp_path / "run").exists()
    assert not (tmp_path / "data").exists()


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (["ж" + " 1" * SIZE], r"has none of the \d+ source types, such as .*; give vectors of that language"),
        (["a" + " 1" * SIZE, "b" + " 1" * 3], rf"line 2: expected a token and {SIZE} finite numbers"),
    ],
)
def test_a_file_that_is_no_use_leaves_no_run(
    toy_config: ConfigMaker, tmp_path: Path, vectors: Path, lines: list[str], message: str
) -> None:
    vectors.write_text("\n".join(lines) + "\n", encoding="utf-8")
    with pytest.raises(UserError, match=message):
        train(toy_config(f"model.embedding.source_vectors={vectors}"), run_dir=tmp_path / "run")
    assert not (tmp_path / "run" / "config.yaml").exists()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (
            {"freeze": True, "target_vectors": "x", "tie": "target"},
            "tie_embeddings=target would freeze the output layer",
        ),
        ({"freeze": True, "source_vectors": "x", "tie": "all"}, "tie_embeddings=all would freeze the output layer"),
        ({"source_vectors": "x", "target_vectors": "y", "tie": "all"}, "both sides share one embedding"),
    ],
)
def test_settings_that_contradict_each_other(settings: dict[str, object], message: str) -> None:
    tie, own = settings.get("tie", "none"), {key: value for key, value in settings.items() if key != "tie"}
    config = ModelConfig(embedding_size=8, readout_size=8, tie_embeddings=tie, embedding=own)
    with pytest.raises(UsageError, match=message):
        build_model(config, num_source_ids=9, num_target_ids=9)


def test_a_frozen_source_beside_a_tied_target() -> None:
    config = ModelConfig(
        embedding_size=8, readout_size=8, tie_embeddings="target", embedding={"freeze": True, "source_vectors": "x"}
    )
    model = build_model(config, num_source_ids=9, num_target_ids=9)
    assert [name for name, one in model.named_parameters() if not one.requires_grad] == ["encoder.embedding.weight"]
