"""The output `copy` through the commands: trained, translating a word that neither vocabulary has."""

import json
import random
from pathlib import Path

import pytest

from seq2seq_attn.__main__ import run
from tests.train.conftest import SOURCE, TARGET, toy_settings


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Pairs of two words, of which the second is a name that hardly comes back."""
    monkeypatch.chdir(tmp_path)
    generator = random.Random(1)
    for split, num_pairs in (("train", 96), ("valid", 8), ("test", 8)):
        pairs = [(generator.randrange(8), f"Na{generator.randrange(10**6)}") for _ in range(num_pairs)]
        for language, words in (("de", SOURCE), ("en", TARGET)):
            lines = "".join(f"{words[i]} {name}\n" for i, name in pairs)
            (tmp_path / f"{split}.{language}").write_text(lines, encoding="utf-8")
    return tmp_path


def train(folder: Path) -> None:
    settings = [
        *toy_settings(folder),
        "data.tokenizer.name=spacy",
        "data.vocab.min_frequency=4",
        "train.optimizer.learning_rate=0.02",
        *(f"model.dropout.{place}=0" for place in ("embedding", "encoder", "readout")),
        "train.max_epochs=null",
        "train.max_updates=80",
    ]
    arguments = [argument for setting in settings for argument in ("--set", setting)]
    assert run(["train", "-c", "base", "-c", "output/copy", *arguments, "--run-dir", "run"]) == 0


def test_train_translate_score_and_evaluate(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    train(folder)
    capsys.readouterr()
    assert run(["translate", "--run", "run", "Hund Zabra", "Katze Qux"]) == 0
    assert capsys.readouterr().out.splitlines() == ["dog Zabra", "cat Qux"]
    for name, target, unknown in (
        ("copied", "dog Zabra", ""),
        ("other", "dog Qux", "1 of 3 target tokens are unknown"),
    ):
        (folder / f"{name}.tsv").write_text(f"Hund Zabra\t{target}\n")
        assert run(["score", "--run", "run", f"{name}.tsv"]) == 0
        assert unknown in (said := capsys.readouterr().err)
        assert ("unknown" in said) == bool(unknown)
    assert run(["evaluate", "run", "--json", "scores.json"]) == 0
    assert json.loads((folder / "scores.json").read_text(encoding="utf-8"))
