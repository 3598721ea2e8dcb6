"""A package of an extra may be missing: a command works without it, or names the extra."""

import re
import sys
import tomllib
from importlib.metadata import PackageNotFoundError
from pathlib import Path

import pytest

from seq2seq_attn.__main__ import run
from seq2seq_attn.text.tokenizers import words
from tests import ROOT
from tests.cli.command_line import assert_fails, outputs
from tests.processes import output_of
from tests.train.conftest import toy_settings

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
EXTRAS = PROJECT["project"]["optional-dependencies"]
PACKAGES = {
    "torchtext": "train",
    "sacrebleu": "train",
    "spacy": "words",
    "matplotlib": "plots",
    "tensorboard": "tensorboard",
    "uvicorn": "serve",
    "onnx": "onnx",
    "huggingface_hub": "hub",
}
MORE = ["PIL", "onnxscript", "python_multipart", "starlette"]
TEXT = "Ein Hund rennt."


def find_no_version(name):
    raise PackageNotFoundError(name)


@pytest.fixture
def without(monkeypatch):
    """Hides packages, as if they were not installed."""

    def hide(package):
        monkeypatch.setitem(sys.modules, package, None)
        monkeypatch.setattr("importlib.metadata.version", find_no_version)
        words._spacy.cache_clear()

    yield hide
    words._spacy.cache_clear()


@pytest.mark.parametrize(
    ("package", "command"),
    [
        ("torchtext", ["train", "-c", "quickstart"]),
        ("sacrebleu", ["train", "-c", "quickstart"]),
        ("spacy", ["prepare", "captions"]),
        ("torchtext", ["prepare", "captions"]),
        ("spacy", ["translate", "--run", "words", TEXT]),
        ("sacrebleu", "evaluate toy --source toy.de --reference toy.en".split()),
        ("sacrebleu", "evaluate toy --metric bag_of_words:BagOfWords".split()),
        ("sacrebleu", [*"translate --run toy --method mbr".split(), TEXT]),
        ("matplotlib", "evaluate toy --plots png".split()),
        ("matplotlib", [*"translate --run toy --attention map.png".split(), TEXT]),
        ("uvicorn", ["serve", "toy"]),
        ("onnx", "export toy -o toy.onnx".split()),
        ("huggingface_hub", ["push", "toy", "me/toy"]),
    ],
    ids=lambda value: value if isinstance(value, str) else " ".join(value[:2]),
)
def test_a_missing_package_is_named_with_its_extra(
    toy_runs, without, capsys, monkeypatch, package, command
):
    monkeypatch.chdir(toy_runs["toy"].path.parent)
    Path("toy.de").write_text(TEXT)
    Path("toy.en").write_text(TEXT)
    without(package)
    extra = PACKAGES[package]
    message = f"{package}: not installed; run: pip install 'seq2seq-attn[{extra}]'"
    assert_fails(capsys, *command, code=1, message=message)


def test_evaluation_without_matplotlib_draws_no_plots(workshop, without, capsys, monkeypatch):
    monkeypatch.chdir(workshop)
    without("matplotlib")
    outputs(capsys, "evaluate", "additive", "--split", "short")
    assert Path("additive/report.short.json").exists()
    assert not list(Path("additive").glob("*.png"))


def test_training_without_tensorboard_says_so(toy_corpus, without, capsys, in_tmp_path):
    without("tensorboard")
    options = [f"--set={setting}" for setting in toy_settings(toy_corpus)]
    assert run(["train", "-c", "base", *options, "--set=train.max_updates=1", "--run-dir=run"]) == 0
    assert "[tensorboard]" in capsys.readouterr().err
    assert not list(Path("run").glob("events*"))


def test_help_and_a_translation_from_subwords_need_no_extra(toy_runs):
    script = f"""
import sys
sys.modules.update(dict.fromkeys({[*PACKAGES, *MORE]}))
from seq2seq_attn.__main__ import run
assert run(["--help"]) == 0
sys.exit(run(["translate", "--run", {str(toy_runs["toy"].path)!r}, "--method", "beam", "{TEXT}"]))
"""
    output_of([sys.executable, "-c", script])


def test_the_package_names_only_extras_that_exist():
    text = "".join(path.read_text("utf-8") for path in ROOT.glob("seq2seq_attn/**/*.py"))
    named = {*re.findall(r'require\("(\w+)"', text), *re.findall(r"seq2seq-attn\[(\w+)\]", text)}
    assert named >= {*PACKAGES.values()}
    assert named <= {*EXTRAS}


def test_all_has_every_extra_but_those_of_developers():
    [everything] = EXTRAS["all"]
    assert {*re.findall(r"\w+", everything.partition("[")[2])} == {*EXTRAS} - {"all", "dev", "docs"}
