"""The sentences that help, README and the demo suggest: the same everywhere, and quickstart
translates them."""

import re
import shutil
from doctest import REPORT_NDIFF, DocTestFinder, DocTestRunner
from operator import attrgetter

import pytest

import seq2seq_attn
from seq2seq_attn.__main__ import run
from tests import ROOT

SENTENCE = "Der kleine Hund, den die Frau sieht, schläft heute."
TRANSLATION = "The small dog that the woman sees is sleeping today."
SUGGESTED = {
    SENTENCE: TRANSLATION,
    "Im Park hat die junge Frau dem Kind, das weint, den roten Ball gezeigt.": (
        "In the park, the young woman showed the red ball to the child who is crying."
    ),
    "Der Hund schläft.": "The dog is sleeping.",
}
EXPLAINED = re.findall(
    r"^\.\. auto(?:function|method|class):: ([\w.]+)",
    (ROOT / "docs" / "api.md").read_text("utf-8"),
    re.MULTILINE,
)
"""the functions, methods and classes that docs/api.md explains"""
PAGES = [
    "README.md",
    "docs/tutorial.md",
    "docs/translate.md",
    "docs/api.md",
    "examples/cosine.py",
]


def read(page):
    return (ROOT / page).read_text("utf-8")


def test_pages_docstrings_the_demo_and_help_suggest_the_sentence(capsys):
    texts = {page: read(page) for page in [*PAGES, "scripts/laboratory/demo.py"]}
    texts["seq2seq_attn"] = seq2seq_attn.__doc__
    assert run(["--help"]) == 0
    texts["help"] = capsys.readouterr().out
    assert [name for name, text in texts.items() if SENTENCE not in text] == []
    promising = ["README.md", "docs/tutorial.md", "seq2seq_attn"]
    assert [name for name in promising if TRANSLATION not in texts[name]] == []


def test_the_api_page_explains_every_public_name():
    text = read("docs/api.md")
    public = [name for name in seq2seq_attn.__all__ if not name.startswith("_")]
    assert [name for name in public if not re.search(rf":: {name}(\(\))?$", text, re.M)] == []


@pytest.fixture(scope="module")
def folder(module_path):
    """A folder with a run of quickstart."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(module_path)
        settings = {"train.num_threads": 1}
        seq2seq_attn.train_model("quickstart", settings, run_dir="runs/quickstart")
    return module_path


@pytest.mark.slow
def test_quickstart_translates_what_is_suggested(folder):
    translations = seq2seq_attn.load(folder / "runs" / "quickstart").translate([*SUGGESTED])
    assert [translation.text for translation in translations] == [*SUGGESTED.values()]


@pytest.mark.slow
@pytest.mark.parametrize("name", EXPLAINED)
def test_the_example_of_a_docstring_runs_and_shows_what_it_says(folder, monkeypatch, name):
    monkeypatch.chdir(folder)
    shutil.copy(ROOT / "examples" / "cosine.py", folder)
    names = {each: getattr(seq2seq_attn, each) for each in seq2seq_attn.__all__}
    [example, *_] = DocTestFinder(recurse=False).find(explained(name), name, globs=names)
    assert example.examples
    assert "+SKIP" not in example.docstring
    outcome = DocTestRunner(optionflags=REPORT_NDIFF).run(example)
    assert outcome.failed == 0


def explained(name):
    """A function or a method of the Python API."""
    return attrgetter(name)(seq2seq_attn)
