"""Evaluating a run neither reads nor writes outside the folder that it is in."""

import re
import shlex
from pathlib import Path

import pytest

from seq2seq_attn.__main__ import run as run_command
from seq2seq_attn.config import Config, load_config
from seq2seq_attn.data.prepare import prepare_corpus
from seq2seq_attn.errors import UserError
from seq2seq_attn.evaluation.systems import System
from seq2seq_attn.evaluation.test_sets import EvaluationSet, find_sets
from seq2seq_attn.evaluation.translations import SetTranslations, translate_set
from seq2seq_attn.run import Run
from tests.toy_run import SOURCE, TARGET, make_toy_run
from tests.train.conftest import toy_settings, write_toy_corpus


@pytest.fixture
def here(tmp_path, monkeypatch) -> Path:
    here = tmp_path / "here"
    write_toy_corpus(here / "text")
    monkeypatch.chdir(here)
    Run.create(here / "run")
    return here


@pytest.fixture
def elsewhere(tmp_path) -> Path:
    write_toy_corpus(tmp_path / "elsewhere")
    return tmp_path / "elsewhere"


def num_pairs(config: Config) -> int:
    [test] = find_sets([Run("run")], [config])
    return len(test.source)


def settings(*changes: str) -> Config:
    return load_config((), [*toy_settings(Path("text")), "data.data_dir=data", *changes])


def test_a_run_is_evaluated_where_it_was_trained(here, tmp_path):
    (tmp_path / "disk").mkdir()
    (here / "data").symlink_to(tmp_path / "disk")  # a link to another disk is the user's own
    assert num_pairs(settings()) == 20


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("data_dir", "{0}/data"),
        ("data_dir", "../elsewhere/data"),
        ("train", "{0}/train"),
        ("valid", "[{0}/valid.de, {0}/valid.en]"),
        ("test", "{{test: {0}/test}}"),
        ("source_dir", "{0}"),
        ("data_dir", "run/link"),
    ],
)
def test_what_lies_elsewhere_is_left_alone(here, elsewhere, key, value):
    (here / "run" / "link").symlink_to(elsewhere)
    before = sorted(elsewhere.rglob("*"))
    with pytest.raises(UserError, match=rf"data.{key}.*`seq2seq prepare -c run/config.yaml`"):
        num_pairs(settings(f"data.{key}={value.format(elsewhere)}"))
    assert sorted(elsewhere.rglob("*")) == before
    assert not (here / "data").exists()


@pytest.mark.parametrize("is_tuned", [False, True])
def test_the_command_that_is_advised_prepares_what_is_read(here, elsewhere, is_tuned):
    train, run = elsewhere / "train", Run(here / "run")
    changes = [f"data.extra=[{train}]", "data.extra_in_vocab=true"]
    if is_tuned:
        run.save_text(prepare_corpus(settings()))
        changes = ["data.vocab_from=gone", "data.mix=1"]
    config = settings(f"data.train={train}", *changes)
    run.save_config(config)
    with pytest.raises(UserError, match=r"data\.train") as raised:
        num_pairs(config)
    [command] = re.findall("`seq2seq (.*)`", str(raised.value))
    assert run_command(shlex.split(command)) == 0
    assert num_pairs(config) == 20


@pytest.mark.usefixtures("here")
def test_what_the_user_has_prepared_elsewhere_is_read(tmp_path):
    config = settings(f"data.data_dir={tmp_path / 'elsewhere'}")
    prepare_corpus(config)
    assert num_pairs(config) == 20


def translate(run: Run) -> SetTranslations:
    system = System("run", [run], [run.config], device="cpu")
    return translate_set(
        system,
        EvaluationSet("test", SOURCE[:2], TARGET[:2]),
        hyps_dir=run.hyps_dir,
        reuse_hypotheses=True,
    )


def test_translations_are_not_saved_through_a_link(tmp_path, caplog):
    run = make_toy_run(tmp_path / "run")
    (tmp_path / "elsewhere").mkdir()
    run.hyps_dir.symlink_to(tmp_path / "elsewhere")
    assert len(translate(run).lines) == 2
    assert list((tmp_path / "elsewhere").iterdir()) == []
    assert "test.txt" in caplog.text


def test_damaged_translations_are_not_reused(tmp_path):
    run = make_toy_run(tmp_path / "run")
    first, again = translate(run), translate(run)
    assert (again.lines, again.is_reused) == (first.lines, True)
    path = run.hyps_dir / "test.txt"
    path.write_text("x" + path.read_text())
    again = translate(run)
    assert (again.lines, again.is_reused) == (first.lines, False)
