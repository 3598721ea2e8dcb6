"""`seq2seq compare`: arms and seeds planned, trained in processes of their own, stopped and taken
up, reported."""

import json
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from seq2seq_attn.__main__ import run as run_command
from seq2seq_attn.api import compare as comparison
from seq2seq_attn.api.compare import (
    PlannedRun,
    plan_runs,
    prepare_corpora,
    train_and_compare,
    train_runs,
)
from seq2seq_attn.api.settings import Layers
from seq2seq_attn.cli.compare import parse_seeds, parse_variations
from seq2seq_attn.config import load_config
from seq2seq_attn.errors import UsageError
from seq2seq_attn.evaluation.names import find_arms
from seq2seq_attn.files import read_json
from seq2seq_attn.run import LOCK, Run
from seq2seq_attn.train.loop import train
from seq2seq_attn.train.session import locked
from tests.cli.command_line import assert_fails, outputs, set_options
from tests.train.conftest import toy_settings, write_toy_corpus
from tests.waiting import wait_for


def plan(config, vary, seeds, settings=(), output=None):
    return plan_runs(Layers([config], [settings]), vary, seeds, output=output)


def names(planned):
    return [str(each.run.path) for each in planned]


def test_every_value_with_every_seed_seed_after_seed():
    planned = plan("quickstart", {"attention": ["additive", "bilinear"]}, [1, 2])
    folder = "runs/compare-quickstart"
    expected = ["additive-s1", "bilinear-s1", "additive-s2", "bilinear-s2"]
    assert names(planned) == [f"{folder}/{name}" for name in expected]
    assert [each.config.model.attention.name for each in planned] == ["additive", "bilinear"] * 2
    assert [each.config.seed for each in planned] == [1, 1, 2, 2]
    assert planned[1].config.name == "quickstart+bilinear"


def test_seeds_may_be_an_array():
    with pytest.raises(UsageError, match="no-such"):
        comparison.compare("no-such", seeds=np.array([1, 2]))


def test_several_variations_make_the_product():
    vary = {
        "model.hidden_size": np.array([96, 128]),
        "encoder": ("bigru", "reversed_gru"),
        "train.optimizer.betas": [[0.9, 0.98], (0.9, 0.999)],
    }
    planned = plan("quickstart", vary, [3], output=Path("here"))
    assert len(planned) == 8
    assert names(planned)[1] == "here/hidden_size=96+bigru+betas=-0.9-0.999-s3"
    last = planned[-1].config
    assert (last.model.hidden_size, last.model.encoder.name) == (128, "reversed_gru")
    assert last.train.optimizer.betas == (0.9, 0.999)


def test_the_number_of_threads_is_a_setting_of_every_run():
    [planned] = plan("quickstart", {}, [2], settings={"train.num_threads": 3})
    assert planned.config.train.num_threads == 1


@pytest.mark.parametrize(
    ("vary", "message"),
    [
        ("attention", "--vary attention"),
        ("attention=", "--vary attention=: expected KEY=VALUE,VALUE"),
        ("attention=[", r"--vary attention=\["),
        ("hidden_size=1,2", "hidden_size"),
        ("seed=1,2", "--vary seed"),
        ("attention=additive,additive", "additive"),
        ("train.device=cpu,auto", "--vary"),
    ],
)
def test_an_invalid_variation_is_refused(vary, message):
    with pytest.raises(UsageError, match=message):
        plan("quickstart", parse_variations([vary]), [1])


def test_arms_that_train_alike_have_other_seeds_and_stay_two_arms():
    vary = {"attention": ["additive", "additive", "dot", "additive"]}
    planned = plan("quickstart", vary, [1, 3], output=Path("here"))
    expected = ["additive-s1", "additive-again-s4", "dot-s1", "additive-again-2-s7"]
    expected += ["additive-s3", "additive-again-s6", "dot-s3", "additive-again-2-s9"]
    assert [each.run.path.name for each in planned] == expected
    assert [each.config.seed for each in planned] == [1, 4, 1, 7, 3, 6, 3, 9]
    arms = find_arms(expected, [each.config for each in planned])
    names_and_runs = [(arm.name, arm.runs) for arm in arms]
    assert names_and_runs == [
        ("additive", (0, 4)),
        ("additive-again", (1, 5)),
        ("dot", (2, 6)),
        ("additive-again-2", (3, 7)),
    ]


def test_an_output_that_an_arm_cannot_have_is_replaced_in_all_arms(caplog):
    caplog.set_level("INFO")
    planned = plan("own-small", {"attention": ["additive", "fixed"]}, [1])
    assert [each.config.model.output.name for each in planned] == ["softmax", "softmax"]
    assert "lexical" in caplog.text
    assert "fixed" in caplog.text


@pytest.mark.parametrize(
    ("config", "vary", "settings"),
    [
        ("own-small", {"attention": ["additive", "dot"]}, ()),
        ("own-small", {"attention": ["additive", "fixed"]}, {"model.output.name": "lexical"}),
        ("own-small", {"attention": ["fixed"], "output": ["lexical"]}, ()),
    ],
)
def test_an_output_stays_if_all_arms_can_have_it_or_the_user_names_it(config, vary, settings):
    planned = plan(config, vary, [1], settings)
    assert {each.config.model.output.name for each in planned} == {"lexical"}


def test_seeds():
    assert parse_seeds("1-3") == [1, 2, 3]
    assert parse_seeds("5, 1,2-3,2") == [5, 1, 2, 3]
    for text in ("", "3-1", "a", "1-", "-1", "1-9999", "1.5"):
        with pytest.raises(UsageError, match="--seeds"):
            parse_seeds(text)


@pytest.fixture
def toy(tmp_path, in_tmp_path):
    write_toy_corpus(tmp_path / "toy")
    return tmp_path / "toy"


def settings(toy, *more):
    return [*toy_settings(toy), *more]


def command(toy, *more):
    vary = "--vary attention=additive,fixed --seeds 1 --output out --at-once 2".split()
    return ["compare", "-c", "base", *set_options(settings(toy, *more)), *vary]


def is_locked(path):
    try:
        with locked(path):
            return False
    except Exception:
        return True


@pytest.mark.slow
@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGKILL, -9)])
def test_stopped_taken_up_and_kept(toy, capsys, number, code):
    limit = "train.max_epochs=6"
    runs = [Path("out/additive-s1"), Path("out/fixed-s1")]
    process = subprocess.Popen(
        [sys.executable, "-m", "seq2seq_attn", *command(toy, limit)], stderr=subprocess.PIPE
    )
    wait_for(lambda: all((path / "last").exists() for path in runs) or process.poll() is not None)
    process.send_signal(number)
    assert process.wait(60) == code
    with process.stderr:
        err = process.stderr.read().decode()
    wait_for(lambda: not any(is_locked(path) for path in runs))
    if number == signal.SIGTERM:
        assert "training (2)" in err
        assert all("--resume" in path.with_name(f"{path.name}.log").read_text() for path in runs)
    assert not any(Run(path).is_finished() for path in runs)

    assert run_command(command(toy, limit)) == 0
    out, err = capsys.readouterr()
    assert out == "out/report.html\n"
    report = read_json(Path("out/report.json"))
    assert [run["name"] for run in report["runs"]] == ["additive-s1", "fixed-s1"]
    assert Path("out/report.html").stat().st_size
    for path in runs:
        lines = [json.loads(line) for line in (path / "metrics.jsonl").read_text().splitlines()]
        assert max(line.get("update") or 0 for line in lines) == 60

    models = [(path / "model.safetensors").stat().st_mtime_ns for path in runs]
    assert run_command(command(toy, limit)) == 0
    assert ": 2; 2 at a time" in capsys.readouterr().err
    assert [(path / "model.safetensors").stat().st_mtime_ns for path in runs] == models

    assert run_command(command(toy, limit, "model.hidden_size=29")) == 2
    assert "out/additive-s1" in capsys.readouterr().err


def test_runs_on_another_text_are_not_seeds_of_one_arm(toy, capsys):
    [first, second] = plan("base", {}, [1, 2], settings(toy, "train.max_updates=1"), "out")
    train(first.config, run_dir=first.run.path)
    prepare_corpora([first, second])
    with (toy / "train.de").open("a") as source, (toy / "train.en").open("a") as target:
        source.write("Hund\n")
        target.write("dog\n")
    options = set_options(settings(toy, "train.max_updates=1"))
    again = ["compare", "-c", "base", *options, "--seeds", "1-2", "--output", "out"]
    assert_fails(capsys, *again, code=1, message="error: out/toy-s1: ")
    assert not second.run.path.exists()
    (first.run.path / "finished.json").unlink()  # interrupted: a resume checks this itself
    prepare_corpora([first, second])


def test_pairs_that_an_arm_drops_are_counted(toy, caplog):
    prepare_corpora(plan("base", {}, [1], settings(toy, "data.max_length=5"), "out"))
    assert "dropped from train: " in caplog.text


def test_a_run_that_fails_is_named_and_the_others_go_on(toy, caplog):
    caplog.set_level("INFO")
    good = plan("base", {}, [1], settings(toy, "train.max_epochs=1"), "out")[0]
    absent = good.config.model_copy(update={"data": load_config((), {"data.train": "no"}).data})
    bad = PlannedRun(Run("out/bad-s1"), absent)
    assert train_runs([bad, good], at_once=1) == [bad]
    assert good.run.is_finished()
    assert load_config([good.config_path]) == good.config
    assert "bad-s1" in caplog.text
    shutil.rmtree("out/toy-s1/last")
    assert train_runs([good], at_once=1) == []


def test_the_second_comparison_in_a_folder_leaves_with_one_line(toy, capsys):
    with locked(Path("out")):
        assert_fails(capsys, *command(toy), code=1, message="out: ")
        assert sorted(path.name for path in Path("out").iterdir()) == [LOCK]


def test_a_comparison_whose_data_is_refused_leaves_no_folder(toy, capsys):
    assert_fails(capsys, *command(toy, "data.max_length=1"), code=1, message="data.max_length")
    assert not Path("out").exists()


def train_here(planned, **_):
    """Train the runs in this process."""
    for each in planned:
        train(each.config, run_dir=each.run.path)
    return []


def test_without_a_test_set_the_validation_set_is_compared(toy, capsys, monkeypatch):
    without = set_options(settings(toy, "train.max_epochs=1", "data.test={}"))
    monkeypatch.setattr(comparison, "train_runs", train_here)
    command = ["compare", "-c", "base", *without, "--seeds", "1", "--output", "out"]
    assert outputs(capsys, *command) == ["out/report.html"]
    report = read_json(Path("out/report.json"))
    assert [test_set["name"] for test_set in report["sets"]] == ["valid"]


def test_language_models_are_refused_before_they_are_trained(toy, monkeypatch):
    monkeypatch.setattr(comparison, "train_runs", train_here)
    overlay = [
        "data.source_language=none",
        "train.validation.metric=perplexity",
        "model.attention.name=fixed",
    ]
    with pytest.raises(UsageError, match=r"data\.source_language=none"):
        train_and_compare(plan("base", {}, [1], settings(toy, *overlay), "out"))


def test_varied_epochs_replace_the_chosen_updates(toy, monkeypatch):
    planned = []
    monkeypatch.setattr(
        comparison, "train_and_compare", lambda runs, *_, **__: planned.extend(runs)
    )
    languages = {"source_language": "de", "target_language": "en"}
    own = {"train_text": "toy/train", **languages}
    comparison.compare(vary={"train.max_epochs": [3, 6]}, seeds=[1], **own)
    trained = [config.train for _, config in planned]
    assert [(train.max_epochs, train.max_updates) for train in trained] == [(3, None), (6, None)]
    assert trained[0].validation.patience is None
    comparison.compare(vary={"train.max_updates": [9, 6_000]}, seeds=[1], **own)
    assert {config.train.validation.every_updates for _, config in planned[2:]} == {300}


def test_own_text_is_compared_too(toy, capsys, monkeypatch):
    seen = []
    monkeypatch.setattr(comparison, "train_runs", lambda planned, **_: seen.extend(planned) or seen)
    own = "--train toy/train --valid toy/valid --source-language de --target-language en".split()
    own += "--vary attention=additive,fixed --seeds 2".split()
    assert_fails(capsys, "compare", *own, code=1, message="2 of 2")  # no run was trained
    folder = "runs/compare-own-de-en"
    assert names(seen) == [f"{folder}/additive-s2", f"{folder}/fixed-s2"]
    assert seen[1].config.data.train == "toy/train"
    assert [each.config.model.output.name for each in seen] == ["softmax", "softmax"]
