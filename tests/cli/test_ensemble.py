"""Several runs as one, through the commands."""

import shutil
from pathlib import Path

import numpy as np
import pytest

from seq2seq_attn import load
from seq2seq_attn.files import list_files, read_json
from seq2seq_attn.run import Run
from seq2seq_attn.text.lines import read_lines
from tests.cli.command_line import assert_fails, outputs
from tests.toy_requests import run_evaluate, translate_and_score
from tests.toy_run import SOURCE, make_toy_run


@pytest.fixture(scope="module")
def runs(workshop):
    """A seed more of each configuration, far enough from the first to translate differently."""
    for name, other, seed in (("additive", "additive-2", 5), ("none", "none-2", 6)):
        config = Run(workshop / name).config
        config.seed = seed
        make_toy_run(workshop / other, config, seed=seed)
    return workshop


@pytest.fixture(autouse=True)
def _in_runs(runs, monkeypatch):
    monkeypatch.chdir(runs)


def test_translate_with_two_runs(runs, capsys, tmp_path):
    names = "--run additive --run none".split()
    maps = f"--attention={tmp_path / 'maps.npz'}"
    texts = outputs(capsys, "translate", *names, *SOURCE, maps)
    expected = load([runs / "additive", runs / "none"], "cpu").translate(SOURCE)
    alone = load(runs / "additive", "cpu").translate(SOURCE)
    assert texts == [translation.text for translation in expected]
    assert texts != [translation.text for translation in alone]
    with np.load(tmp_path / "maps.npz") as arrays:
        np.testing.assert_allclose(arrays["attention_0"], expected[0].attention, atol=1e-6)


def test_runs_of_opposite_directions_form_no_ensemble(capsys):
    shutil.copytree("additive", "backwards")
    config = Path("backwards/config.yaml")
    text = config.read_text().replace("source_language: de", "source_language: en")
    config.write_text(text.replace("target_language: en", "target_language: de"))
    list_files(Path("backwards"), [config])
    names = "--run additive --run backwards".split()
    assert_fails(capsys, "translate", *names, "Hund", code=2, message="languages")


def test_score_takes_one_run(capsys):
    assert_fails(
        capsys, "score", "--run", "additive", "--run", "none", "train", code=2, message="--run"
    )


def test_the_ensemble_is_scored_beside_its_members(runs, capsys):
    command = "evaluate additive none --ensemble --split short --device cpu"
    name = "ensemble of additive, none"
    assert name in "\n".join(outputs(capsys, *command.split()))
    report = read_json(runs / "additive" / "report.comparison.short.json")
    assert [run["name"] for run in report["runs"]] == ["additive", "none", name]
    assert report["runs"][2]["members"] == ["additive", "none"]
    [scores] = report["sets"]
    [bleu] = [measure for measure in scores["measures"] if measure["name"] == "bleu"]
    assert "paired_bootstrap" in bleu["runs"][2]
    for members, written in (
        (["additive", "none"], "additive/hyps/ensemble/short.txt"),
        (["additive"], "additive/hyps/short.txt"),
    ):
        translator = load([runs / member for member in members], "cpu")
        expected = [translation.text for translation in translator.translate(SOURCE)]
        assert read_lines(runs / written) == expected


def test_runs_that_differ_in_their_seed_are_one_arm_and_the_ensemble_another():
    report = run_evaluate(Path(), "additive", "additive-2", ensemble=True, split=["short"])
    name = "ensemble of additive, additive-2"
    assert [(arm["name"], arm["runs"]) for arm in report.data["groups"]] == [
        ("additive", ["additive", "additive-2"]),
        (name, [name]),
    ]
    [_, ensemble] = report.sets[0].whole.scores["bleu"]
    assert ensemble.bootstrap is not None
    assert name in report.summary


def is_reused(*names, **options):
    report = translate_and_score(
        Path(), *names, ensemble=True, split=["short"], reuse_hypotheses=True, **options
    )
    return [run["is_reused"] for run in report.data["runs"]]


def test_saved_hypotheses_are_those_of_the_same_members(runs, tmp_path):
    for name in ("additive", "none", "none-2"):
        shutil.rmtree(runs / name / "hyps", ignore_errors=True)
    named = {"json": tmp_path / "scores.json"}
    assert is_reused("additive", "none", **named) == [False, False, False]
    assert is_reused("additive", "none", **named) == [True, True, True]
    assert is_reused("additive", "none", beam_size=1, **named) == [False, False, False]
    assert is_reused("additive", "none-2", **named) == [True, False, False]
    assert is_reused("additive", "none", "none-2", **named)[-1] is False
    folders = {path.name for path in (tmp_path / "scores.hyps").iterdir()}
    assert folders == {"additive", "none", "none-2", "ensemble"}
    assert not (runs / "additive" / "hyps").exists()


def test_a_member_called_ensemble_keeps_its_hypotheses(runs, tmp_path):
    make_toy_run(tmp_path / "ensemble", Run(runs / "additive").config, seed=9)
    shutil.copytree(runs / "none", tmp_path / "none")
    translate_and_score(
        tmp_path, "ensemble", "none", ensemble=True, split=["short"], json=tmp_path / "scores.json"
    )
    folders = sorted((tmp_path / "scores.hyps").iterdir())
    assert len(folders) == 3
    assert len({(folder / "short.txt").read_text("utf-8") for folder in folders}) == 3
