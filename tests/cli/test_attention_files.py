"""Several `--attention` files at once, and lines with characters that pictures cannot draw."""

from pathlib import Path
from xml.etree import ElementTree

import pytest

from seq2seq_attn.__main__ import run as run_command
from tests.toy_run import SOURCE, TARGET, make_toy_run

BEGINS = {".html": b"<!doctype html", ".png": b"\x89PNG", ".svg": b"<?xml", ".pdf": b"%PDF", ".npz": b"PK"}


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(make_toy_run(tmp_path_factory.mktemp("runs") / "toy").path)


def options(folder: Path) -> list[str]:
    return [word for suffix in BEGINS for word in ("--attention", str(folder / f"maps{suffix}"))]


@pytest.mark.parametrize("command", ["translate", "score"])
def test_every_file_is_written(run: str, tmp_path: Path, command: str) -> None:
    (tmp_path / "pairs.tsv").write_text(f"{SOURCE[0]}\t{TARGET[0]}\n", encoding="utf-8")
    subject = SOURCE[:1] if command == "translate" else [str(tmp_path / "pairs.tsv")]
    assert run_command([command, *subject, "--run", run, "--device", "cpu", *options(tmp_path)]) == 0
    for suffix, begin in BEGINS.items():
        assert (tmp_path / f"maps{suffix}").read_bytes().lower().startswith(begin.lower()), suffix


def test_characters_that_no_picture_shows_are_drawn_as_escapes(run: str, tmp_path: Path) -> None:
    line = "Ein\ufeff Hund \x1b[31m rennt\x08 \x00 \u202e!"
    (tmp_path / "in").write_text(f"{line}\n", encoding="utf-8")
    command = ["translate", "-i", str(tmp_path / "in"), "-o", str(tmp_path / "out"), "--run", run, "--device", "cpu"]
    assert run_command([*command, *options(tmp_path)]) == 0
    ElementTree.parse(tmp_path / "maps.svg")  # well-formed
    for suffix, begin in BEGINS.items():
        assert (tmp_path / f"maps{suffix}").read_bytes().lower().startswith(begin.lower()), suffix
