"""Evaluating a run of a stranger opens, writes and deletes nothing outside it."""

import os
import shutil
import sys
from pathlib import Path

import pytest

from seq2seq_attn.errors import UserError
from seq2seq_attn.evaluation.systems import System
from seq2seq_attn.evaluation.test_sets import EvaluationSet, find_sets
from seq2seq_attn.evaluation.translations import translate_set
from seq2seq_attn.files import write_listed
from seq2seq_attn.run import Run
from tests.processes import output_of
from tests.toy_run import SOURCE, TARGET, make_toy_run, toy_config


@pytest.fixture
def run(tmp_path):
    """A run that keeps its test set; its text and data folder are named by absolute paths."""
    text = tmp_path / "text"
    text.mkdir()
    for language, lines in (("de", SOURCE), ("en", TARGET)):
        (text / f"all.{language}").write_text("\n".join(lines), "utf-8")
    splits = {"train": f"{text}/all", "valid": f"{text}/all", "test": {"test": f"{text}/all"}}
    config = toy_config(corpus="files", data_dir=str(tmp_path / "data"), **splits)
    return make_toy_run(tmp_path / "here/run", config)


OPENED = """
import os, sys
from seq2seq_attn.__main__ import run
opened = set()
def record(event, arguments):
    if event in ("open", "os.listdir", "os.scandir", "os.remove", "os.rename", "os.mkdir"):
        if isinstance(arguments[0], (str, bytes)):
            opened.add(os.path.abspath(os.fsdecode(arguments[0])))
sys.addaudithook(record)
code = run(sys.argv[1:])
print("OPENED", *opened, sep="\\n")
sys.exit(code)
"""


def test_evaluate_touches_nothing_outside_the_run(run, tmp_path):
    for name in ("text", "data"):
        (tmp_path / name).rename(tmp_path / f"{name}-moved")
    stale = tmp_path / "data/prepared/.old.tmp"
    stale.mkdir(parents=True)
    os.utime(stale, (0, 0))
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    command = [sys.executable, "-P", "-c", OPENED, "evaluate", str(run.path), "--device", "cpu"]
    opened = output_of(command, cwd=elsewhere).partition("OPENED\n")[2].splitlines()
    outside = [
        path
        for path in opened
        if Path(path).is_relative_to(tmp_path) and not Path(path).is_relative_to(run.path)
    ]
    assert outside == []
    assert any(Path(path).is_relative_to(run.path / "sets") for path in opened)
    assert stale.exists()
    assert not list(elsewhere.iterdir())


@pytest.mark.parametrize("name", ["sets", "sets/test.source", "sets/manifest.json"])
def test_sets_are_not_read_through_a_link(run, tmp_path, name):
    path = run.path / name
    path.rename(tmp_path / "secret")
    path.symlink_to(tmp_path / "secret")
    with pytest.raises(UserError, match="link"):
        find_sets([run])


def test_a_link_is_resolved_as_the_system_does(run, tmp_path):
    """`link/../..` is the folder above the link's target, not that of the run."""
    (tmp_path / "far/away").mkdir(parents=True)
    shutil.copytree(run.path / "sets", tmp_path / "far/sets")
    (run.path / "link").symlink_to(tmp_path / "far/away")
    shutil.rmtree(run.path / "sets")
    (run.path / "sets").symlink_to("link/../sets")
    with pytest.raises(UserError, match="link"):
        find_sets([run])


def test_sets_of_different_numbers_of_lines_are_refused(run):
    write_listed(run.path / "sets/test.references", b"one\n")
    with pytest.raises(UserError, match=r"test.*numbers of lines"):
        find_sets([run])


def translate(run):
    system = System("run", [run], device="cpu")
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


def test_no_manifest_is_read_through_a_link_to_save_translations(tmp_path, caplog):
    run = make_toy_run(tmp_path / "run")
    run.hyps_dir.mkdir()
    (tmp_path / "secret.json").write_text('{"elsewhere": ["5a"]}')
    (run.hyps_dir / "manifest.json").symlink_to(tmp_path / "secret.json")
    assert len(translate(run).lines) == 2
    assert "manifest.json: a link" in caplog.text


def test_probabilities_that_are_not_numbers_are_told(tmp_path, caplog):
    run = make_toy_run(tmp_path / "run")
    tensors = dict(run.load_best().tensors)
    tensors["output.projection.weight"] *= 3e37
    run.save_best(tensors, {"update": 0})
    translate(Run(run.path))
    assert "not numbers" in caplog.text


def test_damaged_translations_are_not_reused(tmp_path):
    run = make_toy_run(tmp_path / "run")
    first = translate(run)
    again = translate(run)
    assert (again.lines, again.is_reused) == (first.lines, True)
    path = run.hyps_dir / "test.txt"
    path.write_text("x" + path.read_text())
    again = translate(run)
    assert (again.lines, again.is_reused) == (first.lines, False)
