"""A variant of each axis from a file of the user's own trains, is resumed and translates: nothing of the package is
edited."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from seq2seq_attn.__main__ import run
from seq2seq_attn.run_dir import RunDir
from seq2seq_attn.translate.translator import load
from tests.train.conftest import toy_settings, write_toy_corpus

SETTINGS = {
    "encoder": ["model.encoder.name=toy_variants:encoder"],
    "cell": [
        "model.encoder.name=bidirectional",
        *(f"model.{x}.cell=toy_variants:cell" for x in ("encoder", "decoder")),
    ],
    "attention": ["model.attention.name=toy_variants:attention"],
    "normalizer": ["model.attention.normalizer=toy_variants"],
    "decoder": ["model.decoder.name=toy_variants:decoder"],
    "output": ["model.output.name=toy_variants:output"],
    "objective": ["train.objectives={'toy_variants:objective': {weight: 0.5, options: {power: 4}}}"],
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An empty current folder with the file and a corpus; what a test imports is unknown to the next one."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("seq2seq_attn.model.variants._imported", {})
    shutil.copy(Path(__file__).parent / "toy_variants.py", tmp_path)
    write_toy_corpus(Path("toy"))
    yield tmp_path
    sys.modules.pop("toy_variants", None)


def is_used(axis: str, run: RunDir) -> bool:
    """Whether the run was trained with the variant of the file."""
    if axis == "objective":
        return bool(sys.modules["toy_variants"].Small.num_terms)
    model = load(run.path, "cpu").model
    used = [model.decoder.attention.normalizer] if axis == "normalizer" else [type(part) for part in model.modules()]
    return any(one.__module__ == "toy_variants" for one in used)


@pytest.mark.parametrize("axis", sorted(SETTINGS))
def test_a_variant_from_outside_trains_is_resumed_and_translates(
    folder: Path, axis: str, capsys: pytest.CaptureFixture[str]
) -> None:
    settings = [*toy_settings(Path("toy")), *SETTINGS[axis], "train.validation.num_pairs=4", "train.max_updates=2"]
    command = ["train", "--run-dir", "mine", "--import", "toy_variants"]
    assert run([*command, "-c", "base", *(word for one in settings for word in ("--set", one))]) == 0
    assert is_used(axis, RunDir("mine"))
    assert run([*command, "--resume", "--set", "train.max_updates=4"]) == 0
    assert RunDir("mine").is_finished()
    capsys.readouterr()
    assert run(["translate", "--run", "mine", "--import", "toy_variants", "--beam-size", "2", "Hund Katze"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 1
