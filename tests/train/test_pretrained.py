"""Training that starts from the weights of another run: its first updates, its resume, and runs that do not fit."""

from __future__ import annotations

import logging
import shutil
from pathlib import Path

import pytest
import torch

from seq2seq_attn.errors import UsageError, UserError
from seq2seq_attn.run_dir import RunDir
from seq2seq_attn.train import checkpoint
from seq2seq_attn.train.loop import train
from tests.train.conftest import ConfigMaker, write_toy_corpus


@pytest.fixture
def before(toy_config: ConfigMaker, tmp_path: Path) -> RunDir:
    """The run to start from."""
    return train(toy_config("train.max_updates=6", "seed=5"), run_dir=tmp_path / "before")


@pytest.mark.parametrize("average_decay", [0.0, 0.9])
def test_training_starts_from_the_best_weights(
    toy_config: ConfigMaker, tmp_path: Path, before: RunDir, average_decay: float, caplog: pytest.LogCaptureFixture
) -> None:
    settings = [f"train.start_from={before.path}", f"train.optimizer.average_decay={average_decay}"]
    hardly = ["train.optimizer.learning_rate=1e-6", "train.max_updates=2", "model.dropout.embedding=0.6"]
    with caplog.at_level(logging.INFO):
        run = train(toy_config(*settings, *hardly), run_dir=tmp_path / "run")
    tensors = before.load_best().tensors
    for name, tensor in run.load_best().tensors.items():
        torch.testing.assert_close(tensor, tensors[name], atol=1e-4, rtol=0)
    assert f"{before.path}: training starts from its weights (update 6)" in caplog.text


HARDLY = ["train.optimizer.learning_rate=1e-6", "train.max_updates=1"]


def largest_difference(one: RunDir, other: RunDir) -> float:
    tensors = other.load_best().tensors
    return max((tensor - tensors[name]).abs().max().item() for name, tensor in one.load_best().tensors.items())


def test_trained_word_vectors_and_lexicons_are_kept(toy_config: ConfigMaker, tmp_path: Path) -> None:
    path = tmp_path / "letters.vec"
    path.write_text("".join(f"{letter} {' '.join(['0.25'] * 17)}\n" for letter in "adnu"), encoding="utf-8")
    settings = [f"model.embedding.source_vectors={path}", "model.output={name: lexicon, options: {num_entries: 3}}"]
    before = train(toy_config(*settings, "train.max_updates=4"), run_dir=tmp_path / "before")
    settings += [f"train.start_from={before.path}", *HARDLY]
    corpus = tmp_path / "corpus"  # the same letters, and other words beside one another
    write_toy_corpus(corpus)
    lines = (corpus / "train.en").read_text(encoding="utf-8").splitlines()
    (corpus / "train.en").write_text("\n".join(lines[::-1]) + "\n", encoding="utf-8")
    run = train(toy_config(*settings, f"data.train={corpus / 'train'}"), run_dir=tmp_path / "run")
    assert largest_difference(run, before) < 1e-4


def test_both_models_of_an_agreement_start_from_the_other_run(
    toy_config: ConfigMaker, tmp_path: Path, before: RunDir, caplog: pytest.LogCaptureFixture
) -> None:
    agreement = "train.objectives={agreement: {}}"
    both = train(toy_config(agreement, "train.max_updates=4"), run_dir=tmp_path / "both")
    run = train(toy_config(agreement, *HARDLY, f"train.start_from={both.path}"), run_dir=tmp_path / "run")
    assert largest_difference(run.reverse, both.reverse) < 1e-4
    with caplog.at_level(logging.INFO):
        train(toy_config(agreement, *HARDLY, f"train.start_from={before.path}"), run_dir=tmp_path / "forward")
    assert f"{before.path}: has no target-to-source model; that of this run starts from random weights" in caplog.text


def test_a_resumed_and_moved_run_needs_the_other_no_more(
    toy_config: ConfigMaker, tmp_path: Path, before: RunDir
) -> None:
    settings = [f"train.start_from={before.path}"]
    whole = train(toy_config(*settings, "train.max_updates=4"), run_dir=tmp_path / "whole")
    train(toy_config(*settings, "train.max_updates=2"), run_dir=tmp_path / "half")
    shutil.rmtree(before.path)
    shutil.move(tmp_path / "half", tmp_path / "moved")
    resumed = train(toy_config(*settings, "train.max_updates=4"), run_dir=tmp_path / "moved", resume=True)
    states = [checkpoint.load_state(run.last_dir).tensors for run in (whole, resumed)]
    assert all(torch.equal(tensor, states[1][name]) for name, tensor in states[0].items())


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("model.hidden_size=29", "its model settings differ from this run's; copy them from .*config.yaml"),
        ("model.decoder.name=luong", "its model settings differ from this run's; copy them from .*config.yaml"),
        ("data.tokenizer.lowercase=true", r"its data\.tokenizer settings differ"),
        ("data.vocab.min_frequency=2", r"its data\.vocab settings differ"),
    ],
)
def test_another_model_or_tokenizer_is_refused_before_data_is_prepared(
    toy_config: ConfigMaker, tmp_path: Path, before: RunDir, setting: str, message: str
) -> None:
    empty = tmp_path / "empty"
    settings = [setting, f"train.start_from={before.path}", f"data.data_dir={empty}"]
    with pytest.raises(UsageError, match=message):
        train(toy_config(*settings), run_dir=tmp_path / "run")
    assert not empty.exists()
    assert not (tmp_path / "run").exists()


def test_another_vocabulary_is_refused(toy_config: ConfigMaker, tmp_path: Path, before: RunDir) -> None:
    write_toy_corpus(tmp_path / "corpus")
    for language in ("de", "en"):
        path = tmp_path / "corpus" / f"train.{language}"
        path.write_text(path.read_text(encoding="utf-8").replace("a", "z"), encoding="utf-8")
    settings = [f"data.train={tmp_path / 'corpus' / 'train'}", f"train.start_from={before.path}"]
    with pytest.raises(UsageError, match=r"its source vocabulary has \d+ types and is not this corpus's"):
        train(toy_config(*settings), run_dir=tmp_path / "run")
    assert RunDir(tmp_path / "run").is_empty()


def test_a_run_that_is_missing_is_refused(toy_config: ConfigMaker, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"^train\.start_from: .*not a run directory .*; if .* a packaged one"):
        train(toy_config(f"train.start_from={tmp_path / 'nowhere'}"), run_dir=tmp_path / "run")
