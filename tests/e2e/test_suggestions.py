"""The sentences that help, README and the demo suggest: the same everywhere, and quickstart
translates them."""

from pathlib import Path

import pytest

import seq2seq_attn
from seq2seq_attn.__main__ import run
from seq2seq_attn.translate import translator

ROOT = Path(__file__).resolve().parents[2]
SENTENCE = "Der kleine Hund, den die Frau sieht, schläft heute."
TRANSLATION = "The small dog that the woman sees is sleeping today."
SUGGESTED = {
    SENTENCE: TRANSLATION,
    "Im Park hat die junge Frau dem Kind, das weint, den roten Ball gezeigt.": (
        "In the park, the young woman showed the red ball to the child who is crying."
    ),
    "Der Hund schläft.": "The dog is sleeping.",
}
PAGES = [
    "README.md",
    "docs/tutorial.md",
    "docs/translate.md",
    "docs/api.md",
    "examples/cosine.py",
]


def read(page):
    return (ROOT / page).read_text(encoding="utf-8")


def test_pages_docstrings_the_demo_and_help_suggest_the_sentence(capsys):
    texts = {page: read(page) for page in [*PAGES, "scripts/laboratory/demo.py"]}
    texts |= {module.__name__: module.__doc__ for module in (seq2seq_attn, translator)}
    assert run(["--help"]) == 0
    texts["help"] = capsys.readouterr().out
    assert [name for name, text in texts.items() if SENTENCE not in text] == []
    promising = ["README.md", "docs/tutorial.md", "seq2seq_attn", translator.__name__]
    assert [name for name in promising if TRANSLATION not in texts[name]] == []


@pytest.mark.slow
def test_quickstart_translates_what_is_suggested(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    trained = seq2seq_attn.train_model("quickstart", {"train.num_threads": 1})
    translations = seq2seq_attn.load(trained.path).translate([*SUGGESTED])
    assert [translation.text for translation in translations] == [*SUGGESTED.values()]
